/** `spindle webhooks listen`: receives deliveries on this machine and checks their signatures. */
import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bodySignature, standardSignature } from '../domain/webhook.js';
import { UsageError, whole } from './command.js';
import { textOf } from './verifyProof.js';

export interface ListenOptions {
  readonly port: string | undefined;
  /** File with the secrets of the webhooks; `-` reads standard input. */
  readonly secretFile: string | undefined;
  readonly json: boolean;
}

const PORT = 9000;
const PORT_MAX = 65_535;
/**
 * Maximum age of a delivery in seconds. An older delivery may be a replay of an intercepted one (Standard
 * Webhooks).
 */
const AGE_SECONDS_MAX = 300;

export async function listenForDeliveries(
  brand: string,
  { port, secretFile, json }: ListenOptions,
): Promise<void> {
  const wanted = port === undefined ? PORT : whole(port, '--port');
  if (wanted > PORT_MAX) throw new UsageError(`--port must be at most ${PORT_MAX}`);
  const secrets = secretFile === undefined ? undefined : secretsIn(secretFile);
  const server = createServer((request, response) => {
    bodyOf(request).then(
      (body) => {
        const faults = secrets === undefined ? undefined : faultsOf(brand, request, body, secrets);
        process.stdout.write(
          `${json ? asJson(request, body, faults) : asText(brand, request, body, faults)}\n`,
        );
        response.writeHead(faults === undefined || faults.length === 0 ? 204 : 401).end();
      },
      () => response.destroy(),
    );
  });
  server.listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const { port: listening } = server.address() as AddressInfo;
  process.stderr.write(`listening on http://localhost:${listening}/\n`);
  await once(server, 'close');
}

/** Secrets are not passed as arguments, because every user of the machine can read arguments. */
function secretsIn(file: string): readonly string[] {
  const secrets = textOf(file)
    .split('\n')
    .flatMap((line) => line.trim() || []);
  if (secrets.length === 0 || secrets.some((secret) => !/^whsec_[\x21-\x7e]+$/.test(secret)))
    throw new UsageError(`${file} must contain one webhook secret (whsec_…) in each line`);
  return secrets;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const header = (request: IncomingMessage, name: string): string =>
  String(request.headers[name.toLowerCase()] ?? '');

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Returns the headers of a delivery whose signature or timestamp is invalid. A signature is valid if it was
 * made with one of the secrets.
 */
function faultsOf(
  brand: string,
  request: IncomingMessage,
  body: Buffer,
  secrets: readonly string[],
): string[] {
  const id = header(request, 'webhook-id');
  const timestampSeconds = Number(header(request, 'webhook-timestamp'));
  const given = header(request, 'webhook-signature').split(' ');
  const isSignedBy = (secret: string): boolean =>
    given.some((signature) => isSame(signature, standardSignature(secret, { id, timestampSeconds, body })));
  const own = `X-${brand}-Signature`;
  const isSigned = secrets.some(isSignedBy);
  // During the day after a rotation, the service's own signature header is signed with the new secret only,
  // whereas webhook-signature is signed with both.
  const isRotated = isSigned && given.length > 1;
  const isOwn = secrets.some((secret) => isSame(header(request, own), bodySignature(secret, body)));
  return [
    ...(isOwn || isRotated ? [] : [own]),
    ...(isSigned ? [] : ['webhook-signature']),
    ...(Math.abs(Date.now() / 1000 - timestampSeconds) <= AGE_SECONDS_MAX ? [] : ['webhook-timestamp']),
  ];
}

function asText(brand: string, request: IncomingMessage, body: Buffer, faults: string[] | undefined): string {
  const own = (name: string): string => header(request, `X-${brand}-${name}`);
  let signed = 'signatures were not checked because --secret-file is not set';
  if (faults !== undefined)
    signed = faults.length === 0 ? 'signatures valid' : `NOT VALID: ${faults.join(', ')}`;
  return `${new Date().toISOString()} ${own('Event')} ${own('Delivery-Id')} attempt ${own('Attempt')}  ${signed}\n  ${body.toString('utf8')}`;
}

const asJson = (request: IncomingMessage, body: Buffer, faults: string[] | undefined): string =>
  JSON.stringify({
    at: new Date().toISOString(),
    path: request.url,
    headers: request.headers,
    body: body.toString('utf8'),
    isValid: faults === undefined ? null : faults.length === 0,
    faults: faults ?? [],
  });
