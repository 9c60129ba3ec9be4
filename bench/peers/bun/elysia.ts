// What both Elysia peers share: schemas, error replies, and how a server starts and stops.
import { FormatRegistry } from '@sinclair/typebox';
import type { SQL } from 'bun';
import { type AnyElysia, Elysia, status, t } from 'elysia';
import { closeOnSignal, giveUp, host, poolSize, port } from '../shared/env.js';
import { MAX_ID, isId, wholeNumber } from '../shared/ids.js';

FormatRegistry.Set('id', isId);
FormatRegistry.Set('limit', wholeNumber(100));
FormatRegistry.Set('rounds', wholeNumber(1_000_000));

// t.Integer would take the string "30" in a body, and t.UnionEnum would fill in a missing currency.
const integer = (minimum: number, maximum: number) => t.Number({ multipleOf: 1, minimum, maximum });

export const Echo = t.Object({
  name: t.String({ minLength: 1, maxLength: 100 }),
  email: t.String({ format: 'email' }),
  age: integer(0, 150),
  tags: t.Array(t.String(), { maxItems: 10 }),
});
export const NewOrder = t.Object({
  userId: integer(1, MAX_ID),
  amount: t.Number({ minimum: 0, maximum: 9999999999.99 }),
  currency: t.Union([t.Literal('USD'), t.Literal('EUR'), t.Literal('GBP')]),
});
export const UserPath = t.Object({ id: t.String({ format: 'id' }) });
export const Page = t.Object({
  page: t.Optional(t.String({ format: 'id' })),
  limit: t.Optional(t.String({ format: 'limit' })),
});
export const Rounds = t.Object({ n: t.String({ format: 'rounds' }) });

const FOREIGN_KEY_VIOLATION = '23503';

/** Replies for everything that is thrown: the default ones show the statement that failed. */
export const errors = new Elysia({ name: 'errors' }).onError({ as: 'global' }, ({ code, error }) => {
  if (code === 'NOT_FOUND') return status(404, { error: 'not found' });
  if (code === 'VALIDATION') return status(422, { error: 'unprocessable' });
  if (code === 'PARSE') return status(400, { error: 'bad request' });
  // Drizzle wraps the driver's error, raw SQL does not.
  const failure = ((error as Error).cause ?? error) as Error & { errno?: string };
  if (failure.errno === FOREIGN_KEY_VIOLATION) return status(422, { error: 'unknown user' });
  console.error(failure.message);
  return status(500, { error: 'internal' });
});

export const notFound = () => status(404, { error: 'not found' });
export const unauthorized = () => status(401, { error: 'unauthorized' });

/** Fills the pool, opens the port and closes both on SIGTERM. */
export async function run(app: AnyElysia, sql: SQL) {
  try {
    const connections = await Promise.all(Array.from({ length: poolSize }, () => sql.reserve()));
    for (const connection of connections) connection.release();
  } catch (error) {
    giveUp('cannot connect to the database', error);
  }
  try {
    // Elysia shares its port by default: a second server would start and take half of the connections.
    app.listen({ hostname: host, port, reusePort: false });
  } catch (error) {
    giveUp(`cannot listen on ${host}:${port}`, error);
  }
  closeOnSignal(async () => {
    await app.stop();
    await sql.close();
  });
}
