// Elysia on Bun with Bun's own SQL client and nothing in between. See README.md.
import { createHash } from 'node:crypto';
import { SQL } from 'bun';
import { Elysia, status } from 'elysia';
import { userIdOf } from '../../shared/auth.js';
import { databaseUrl, poolSize } from '../../shared/env.js';
import { Echo, NewOrder, Page, Rounds, UserPath, errors, notFound, run, unauthorized } from '../elysia.ts';

const sql = new SQL({ url: databaseUrl, max: poolSize });

async function userById(id: number) {
  const [user] = await sql`select id, name, email, age, created_at as "createdAt" from users where id = ${id}`;
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
    const items = await sql`
      select id, name, email, age, created_at as "createdAt" from users
      order by id limit ${limit} offset ${(page - 1) * limit}`;
    return { page, limit, items };
  }, { query: Page })
  .post('/orders', async ({ body: { userId, amount, currency } }) => {
    const [order] = await sql`
      insert into orders (user_id, amount, currency, created_at)
      values (${userId}, ${amount.toFixed(2)}, ${currency}, ${new Date()})
      returning id, user_id as "userId", amount, currency, created_at as "createdAt"`;
    return status(201, order);
  }, { body: NewOrder })
  .get('/cpu', ({ query }) => {
    const n = Number(query.n);
    let hash = 'headroom';
    for (let round = 0; round < n; round++) hash = createHash('sha256').update(hash).digest('hex');
    return { n, hash };
  }, { query: Rounds });

await run(app, sql);
