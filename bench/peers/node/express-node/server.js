// Express 5 on Node, postgres.js through plain Drizzle, TypeBox validators compiled at start. See README.md.
import { createHash } from 'node:crypto';
import { asc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import express from 'express';
import postgres from 'postgres';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import Format from 'typebox/format';
import { userIdOf } from '../../shared/auth.js';
import { closeOnSignal, databaseUrl, giveUp, host, poolSize, port } from '../../shared/env.js';
import { MAX_ID, isId, wholeNumber } from '../../shared/ids.js';
import { orders, users } from '../../shared/tables.js';

const sql = postgres(databaseUrl, { max: poolSize });
const db = drizzle({ client: sql });

// --- validation ---

Format.Set('id', isId);
Format.Set('limit', wholeNumber(100));
Format.Set('rounds', wholeNumber(1_000_000));

/** Middleware that answers 422 unless `part` of the request matches the schema. */
function validate(part, schema) {
  const validator = Compile(schema);
  return (req, res, next) => {
    if (validator.Check(req[part])) return next();
    const details = validator.Errors(req[part]).map(({ instancePath, message }) => ({ path: instancePath, message }));
    res.status(422).json({ error: 'unprocessable', details });
  };
}

const Echo = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100 }),
  email: Type.String({ format: 'email' }),
  age: Type.Integer({ minimum: 0, maximum: 150 }),
  tags: Type.Array(Type.String(), { maxItems: 10 }),
});
const NewOrder = Type.Object({
  userId: Type.Integer({ minimum: 1, maximum: MAX_ID }),
  amount: Type.Number({ minimum: 0, maximum: 9999999999.99 }),
  currency: Type.Union([Type.Literal('USD'), Type.Literal('EUR'), Type.Literal('GBP')]),
});
const UserPath = Type.Object({ id: Type.String({ format: 'id' }) });
const Page = Type.Object({
  page: Type.Optional(Type.String({ format: 'id' })),
  limit: Type.Optional(Type.String({ format: 'limit' })),
});
const Rounds = Type.Object({ n: Type.String({ format: 'rounds' }) });

// --- routes ---

const app = express();
app.disable('x-powered-by');
const json = express.json();

app.get('/health', (req, res) => {
  res.json({ status: 'ok' });
});

app.post('/echo', json, validate('body', Echo), (req, res) => {
  const { name, email, age, tags } = req.body;
  res.json({ name, email, age, tags });
});

app.get('/me', async (req, res) => {
  const id = await userIdOf(req.get('authorization'));
  if (id === undefined) return res.status(401).json({ error: 'unauthorized' });
  await sendUser(res, id);
});

app.get('/users/:id', validate('params', UserPath), async (req, res) => {
  await sendUser(res, Number(req.params.id));
});

async function sendUser(res, id) {
  const [user] = await db.select().from(users).where(eq(users.id, id));
  if (!user) return res.status(404).json({ error: 'not found' });
  res.json(user);
}

app.get('/users', validate('query', Page), async (req, res) => {
  const page = Number(req.query.page ?? 1);
  const limit = Number(req.query.limit ?? 20);
  const items = await db.select().from(users).orderBy(asc(users.id)).limit(limit).offset((page - 1) * limit);
  res.json({ page, limit, items });
});

app.post('/orders', json, validate('body', NewOrder), async (req, res) => {
  const { userId, amount, currency } = req.body;
  const [order] = await db.insert(orders)
    .values({ userId, amount: amount.toFixed(2), currency, createdAt: new Date() })
    .returning();
  res.status(201).json(order);
});

app.get('/cpu', validate('query', Rounds), (req, res) => {
  const n = Number(req.query.n);
  let hash = 'headroom';
  for (let round = 0; round < n; round++) hash = createHash('sha256').update(hash).digest('hex');
  res.json({ n, hash });
});

// --- errors ---

const FOREIGN_KEY_VIOLATION = '23503';

app.use((req, res) => {
  res.status(404).json({ error: 'not found' });
});

// Four parameters tell Express that this handles errors.
app.use((error, req, res, next) => {
  if (res.headersSent) return next(error);
  if (error.cause?.code === FOREIGN_KEY_VIOLATION) return res.status(422).json({ error: 'unknown user' });
  if (error.status >= 400 && error.status < 500) return res.status(error.status).json({ error: 'bad request' });
  console.error(error.message, error.cause?.message ?? '');
  res.status(500).json({ error: 'internal' });
});

// --- life ---

// Asked all at once, as many queries open as many connections: the pool is full before the port opens.
await Promise.all(Array.from({ length: poolSize }, () => sql`select 1`))
  .catch((error) => giveUp('cannot connect to the database', error));

const server = app.listen(port, host, (error) => {
  if (error) giveUp(`cannot listen on ${host}:${port}`, error);
});

closeOnSignal(async () => {
  await new Promise((closed) => server.close(closed));
  await sql.end();
});
