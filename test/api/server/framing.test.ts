/**
 * Requests as they should be and as they should not, byte by byte: what each HTTP server makes of them. No case may end the
 * process, be answered by a fault of ours, or have a request that hides in another one served.
 *
 * The cases cover what llhttp's tests of requests and h1spec (github.com/uNetworking/h1spec) look at, in our own words.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { plainRequest, portOf, SPIN_PATH, spinRequest, Wire } from '../../support/load.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { framingCases } from './framingCases.js';

/** A server that has more to say says it within. */
const SILENCE_MS = 500;

let stores: TestStores;
let service: ServerProcess;
let partner: TestPartner;
let gameId: number;
let port: number;

beforeAll(async () => {
  stores = await freshStores();
  service = await spawnService(environment(stores, { CELLS: '1' }));
  partner = await service.client.newPartner();
  gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
  port = portOf(service.base!);
});
afterAll(async () => {
  await service.stop();
  await stores.drop();
});

/** What has come so far of what a server makes of some bytes. */
interface Outcome {
  /** Statuses of the answers in order, then whether the connection is closed; see `Framing`. */
  shown(): string;
  end(): void;
}

/** Sends bytes on a connection of their own. */
async function send(bytes: string): Promise<Outcome> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  await once(socket, 'connect');
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(Buffer.from(bytes, 'latin1'));
  return {
    shown: () => {
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => match[1]);
      return [...statuses, socket.closed ? 'closed' : statuses.length === 0 ? 'waits' : 'open'].join(' ');
    },
    end: () => socket.destroy(),
  };
}

const spinBody = (playerId: string): string => JSON.stringify({ gameId, playerId, wagerUsd: 0.25 });

test('every request is answered as it should be, or refused, and none that hides in another is served', async () => {
  const cases = framingCases(partner.key, spinBody('framing'));
  const seen = await Promise.all(cases.map(async (each) => ({ ...each, outcome: await send(each.bytes) })));
  const differing = () =>
    seen
      .filter((each) => each.outcome.shown() !== each[HTTP_SERVER])
      .map(({ name, outcome, [HTTP_SERVER]: expected }) => `${name}: ${outcome.shown()}, not ${expected}`);
  await until(() => differing().length === 0, 'each is as expected').catch(() => {});
  // Nothing else comes.
  await new Promise((resolve) => setTimeout(resolve, SILENCE_MS));
  expect(differing()).toEqual([]);
  for (const { outcome } of seen) outcome.end();
  expect(service.hasEnded).toBe(false);
});

const H1SPEC = {
  waits: /^waits$/,
  served: /^(100|2\d\d)/,
  refused: /^4\d\d/,
  'refused or 5xx': /^[45]\d\d/,
};

test('33 of the 33 cases of h1spec are right on node:http, 24 on uWebSockets.js', () => {
  const cases = framingCases('', '').filter(({ h1spec }) => h1spec !== undefined);
  expect(cases).toHaveLength(33);
  const right = cases.filter((each) => H1SPEC[each.h1spec!].test(each[HTTP_SERVER]));
  expect(right.length).toBe({ uws: 24, node: 33 }[HTTP_SERVER]);
});

describe('a request that comes in two pieces is answered, wherever it is split', () => {
  const shapes: [string, () => string][] = [
    ['a GET', () => plainRequest('GET', '/healthz?a=b', partner.key)],
    ['a spin', () => spinRequest(partner.key, spinBody('split')).toString('latin1')],
    [
      'a spin in chunks',
      () => {
        const [one, two] = [spinBody('split').slice(0, 9), spinBody('split').slice(9)];
        const sizes = [one, two].map((chunk) => chunk.length.toString(16));
        const head = `POST ${SPIN_PATH} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${partner.key}\r\nTransfer-Encoding: chunked\r\n\r\n`;
        return `${head}${sizes[0]}\r\n${one}\r\n${sizes[1]}\r\n${two}\r\n0\r\n\r\n`;
      },
    ],
  ];

  /** Where uWebSockets.js answers 505: behind the method's space, and from the space behind the URL to the line's end. */
  const isForeign = (request: string, at: number): boolean => {
    const [first, second] = [request.indexOf(' ') + 1, request.indexOf(' ', request.indexOf(' ') + 1) + 1];
    return HTTP_SERVER === 'uws' && (at === first || (at >= second && at <= request.indexOf('\r\n') + 1));
  };

  test.each(shapes)('%s', async (_what, shape) => {
    const request = shape();
    const wires = await Promise.all(Array.from({ length: request.length - 1 }, () => Wire.open(port)));
    await Promise.all(wires.map((wire, at) => wire.send(Buffer.from(request.slice(0, at + 1), 'latin1'))));
    // It has read the first pieces once it answers what was sent behind them.
    const witness = await Wire.open(port);
    for (let turn = 0; turn < 3; turn++) await witness.ask(plainRequest('GET', '/healthz', ''));
    const answers = await Promise.all(
      wires.map(async (wire, at) => (await wire.ask(Buffer.from(request.slice(at + 1), 'latin1'))).status),
    );
    for (const wire of [...wires, witness]) wire.close();
    const expected = answers.map((_status, at) => (isForeign(request, at + 1) ? 505 : 200));
    expect(answers).toEqual(expected);
  });
});

test('no case is one of a fault of ours: 505 is what uWebSockets.js says of other versions than HTTP/1.1', () => {
  const statuses = framingCases('', '').flatMap(({ uws, node }) => `${uws} ${node}`.match(/5\d\d/g) ?? []);
  expect(new Set(statuses)).toEqual(new Set(['505']));
});
