// What every peer takes from its environment, and how it gives up. Nothing here chooses behaviour: a peer that
// answers in another way is another peer.
import process from 'node:process';

export const host = process.env.HOST ?? '127.0.0.1';
export const port = Number(process.env.PORT ?? 3000);
export const databaseUrl = process.env.DATABASE_URL ?? giveUp('DATABASE_URL is not set');
export const poolSize = Number(process.env.DATABASE_POOL ?? 10);
export const jwtSecret = process.env.JWT_SECRET ?? 'bench-secret-do-not-use-in-production';

// How long open requests may take to finish after SIGTERM.
const SHUTDOWN_MS = 3000;

/** One line on stderr, then exit status 1. The message of a driver names no password. */
export function giveUp(what, error) {
  console.error(error ? `${what}: ${error.message || error.code}` : what);
  process.exit(1);
}

/** Runs `close` on SIGTERM or SIGINT, then exits: status 0 when it finished in time. */
export function closeOnSignal(close) {
  const stop = async () => {
    setTimeout(() => giveUp(`requests still open ${SHUTDOWN_MS} ms after the signal to stop`), SHUTDOWN_MS).unref();
    await close();
    process.exit(0);
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
}
