/** Ids of requests: which process answered, and a random number. They tell nobody how many requests there are. */
import { randomBytes, randomFillSync } from 'node:crypto';

const ID_BYTES = 6;
/** Random numbers are asked of the operating system for so many ids at once. */
const IDS_AT_ONCE = 512;

const prefix = randomBytes(5).toString('hex');
const random = Buffer.alloc(ID_BYTES * IDS_AT_ONCE);
let text = '';
let place = 0;

/** Ten hexadecimal digits of the process, a dash, twelve random ones. */
export function newRequestId(): string {
  if (place === text.length) {
    text = randomFillSync(random).toString('hex');
    place = 0;
  }
  const id = text.slice(place, place + 2 * ID_BYTES);
  place += 2 * ID_BYTES;
  return `${prefix}-${id}`;
}
