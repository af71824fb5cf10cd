/**
 * Parses the PROXY protocol (haproxy.org, proxy-protocol.txt, versions 1 and 2), by which a load balancer
 * names the client in the first bytes of a connection.
 */
import type { Socket } from 'node:net';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const V2_HEAD_BYTES = 16;
const V1_START = Buffer.from('PROXY ');
const V1_BYTES_MAX = 107;
/** Codes of the address family and protocol in version 2 of the PROXY protocol. */
const TCP4 = 0x11;
const TCP6 = 0x21;
const WITHIN_MS = 10_000;

export interface ProxyHeader {
  /** Address of the client; empty if the header names no client. */
  readonly address: string;
  /** Length of the header in bytes; 0 if there is no header. */
  readonly bytes: number;
}

const NONE: ProxyHeader = { address: '', bytes: 0 };

/**
 * @returns undefined if the bytes may be the start of an incomplete header
 * @throws Error if the bytes begin like a header and are not valid
 */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | undefined {
  if (startsLike(bytes, SIGNATURE)) return bytes.length < SIGNATURE.length ? undefined : parseV2(bytes);
  if (startsLike(bytes, V1_START)) return bytes.length < V1_START.length ? undefined : parseV1(bytes);
  return NONE;
}

/** Returns whether the bytes begin with `start`, or are a prefix of it. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

function parseV1(bytes: Buffer): ProxyHeader | undefined {
  const end = bytes.indexOf('\r\n');
  if (end < 0 && bytes.length < V1_BYTES_MAX) return undefined;
  const fields = bytes.toString('latin1', 0, end < 0 ? V1_BYTES_MAX : end).split(' ');
  if (fields[1] === 'UNKNOWN' && end > 0) return { address: '', bytes: end + 2 };
  if (end < 0 || fields.length !== 6 || !/^TCP[46]$/.test(fields[1]!))
    throw new Error('the connection does not begin with a valid PROXY header');
  return { address: fields[2]!, bytes: end + 2 };
}

function parseV2(bytes: Buffer): ProxyHeader | undefined {
  if (bytes.length < V2_HEAD_BYTES) return undefined;
  const [command, family] = [bytes[12]!, bytes[13]!];
  if (command !== 0x20 && command !== 0x21)
    throw new Error('the connection does not begin with a valid PROXY header');
  const length = V2_HEAD_BYTES + bytes.readUInt16BE(14);
  if (bytes.length < length) return undefined;
  const isProxied = command === 0x21;
  if (isProxied && family === TCP4 && length >= V2_HEAD_BYTES + 12)
    return { address: bytes.subarray(16, 20).join('.'), bytes: length };
  if (isProxied && family === TCP6 && length >= V2_HEAD_BYTES + 36) {
    const words = bytes.toString('hex', 16, 32).match(/.{4}/g)!;
    return { address: words.join(':'), bytes: length };
  }
  return { address: '', bytes: length };
}

/**
 * Removes the header from a connection and passes on the bytes that follow. Closes a connection that sends an
 * incomplete header.
 */
export function takeProxyHeader(socket: Socket, onAddress: (address: string) => void): void {
  let received: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    let header: ProxyHeader | undefined;
    try {
      header = parseProxyHeader(received);
    } catch {
      socket.destroy();
      return;
    }
    if (header === undefined) return;
    socket.off('data', onData);
    socket.pause();
    socket.setTimeout(0);
    socket.off('timeout', onTimeout);
    socket.off('error', onError);
    if (received.length > header.bytes) socket.unshift(received.subarray(header.bytes));
    onAddress(header.address);
    socket.resume();
  };
  const onTimeout = (): void => void socket.destroy();
  const onError = (): void => {};
  socket.on('data', onData);
  socket.on('error', onError);
  socket.setTimeout(WITHIN_MS);
  socket.on('timeout', onTimeout);
}
