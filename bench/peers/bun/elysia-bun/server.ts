// Elysia on Bun, Bun's own SQL client through plain Drizzle. See README.md.
import { createHash } from 'node:crypto';
import { SQL } from 'bun';
import { asc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/bun-sql';
import { Elysia, status } from 'elysia';
import { userIdOf } from '../../shared/auth.js';
import { databaseUrl, poolSize } from '../../shared/env.js';
import { orders, users } from '../../shared/tables.js';
import { Echo, NewOrder, Page, Rounds, UserPath, errors, notFound, run, unauthorized } from '../elysia.ts';

const sql = new SQL({ url: databaseUrl, max: poolSize });
const db = drizzle({ client: sql });

async function userById(id: number) {
  const [user] = await db.select().from(users).where(eq(users.id, id));
  return user ?? notFound();
}

const app = new Elysia()
  .use(errors)
  .get('/health', () => ({ status: 'ok' }))
  .post('/echo', ({ body }) => body, { body: Echo })
  .get('/me', async ({ headers }) => {
    const id = await userIdOf(headers.authorization);
    return id === undefined ? unauthorized() : userById(id);
  })
  .get('/users/:id', ({ params }) => userById(Number(params.id)), { params: UserPath })
  .get('/users', async ({ query }) => {
    const page = Number(query.page ?? 1);
    const limit = Number(query.limit ?? 20);
    const items = await db.select().from(users).orderBy(asc(users.id)).limit(limit).offset((page - 1) * limit);
    return { page, limit, items };
  }, { query: Page })
  .post('/orders', async ({ body: { userId, amount, currency } }) => {
    const [order] = await db.insert(orders)
      .values({ userId, amount: amount.toFixed(2), currency, createdAt: new Date() })
      .returning();
    return status(201, order);
  }, { body: NewOrder })
  .get('/cpu', ({ query }) => {
    const n = Number(query.n);
    let hash = 'headroom';
    for (let round = 0; round < n; round++) hash = createHash('sha256').update(hash).digest('hex');
    return { n, hash };
  }, { query: Rounds });

await run(app, sql);
