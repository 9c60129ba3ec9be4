// Bearer tokens, the same for every peer: one library, the key imported once, the signature checked on every request.
import { jwtVerify } from 'jose';
import { jwtSecret } from './env.js';
import { isId } from './ids.js';

const key = await crypto.subtle.importKey(
  'raw', new TextEncoder().encode(jwtSecret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'],
);
const onlyHs256 = { algorithms: ['HS256'] };

/** The id in a valid token's `sub`, or undefined for any header that does not authorize. */
export async function userIdOf(authorization) {
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (!token) return undefined;
  try {
    const { payload } = await jwtVerify(token, key, onlyHs256);
    return typeof payload.sub === 'string' && isId(payload.sub) ? Number(payload.sub) : undefined;
  } catch {
    return undefined;
  }
}
