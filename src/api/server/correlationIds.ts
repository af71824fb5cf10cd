/**
 * Creates correlation ids (X-Request-Id) from an id of the process and a random number. The ids do not reveal
 * the number of requests.
 */
import { randomBytes, randomFillSync } from 'node:crypto';

const ID_BYTES = 6;
/** Number of ids for which random bytes are fetched from the operating system at a time. */
const IDS_AT_ONCE = 512;

const prefix = randomBytes(5).toString('hex');
const random = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
let text = '';
let place = 0;

/** Returns ten hexadecimal digits that identify the process, a dash, and twelve random hexadecimal digits. */
export function newRequestId(): string {
  if (place === text.length) {
    text = randomFillSync(random).toString('hex');
    place = 0;
  }
  const id = text.slice(place, place + 2 * ID_BYTES);
  place += 2 * ID_BYTES;
  return `${prefix}-${id}`;
}
