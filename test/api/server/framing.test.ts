/**
 * Sends well-formed and malformed HTTP requests to each HTTP server, byte by byte, and compares its behaviour
 * with the expected one. No case may crash the process, cause a 500, or get a request served that is hidden
 * inside another request.
 *
 * The cases cover the request tests of llhttp and of h1spec (github.com/uNetworking/h1spec), but are not
 * copied from them.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { TestPartner } from '../../support/client.js';
import { HTTP_SERVER, IS_NEWER_BINDING } from '../../support/httpServer.js';
import { plainRequest, portOf, SPIN_PATH, spinRequest, Wire } from '../../support/load.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import { type Framing, framingCases, REFUSED_BY_NEWER_BINDING } from './framingCases.js';

/** Time in ms without output after which the server is considered to have sent everything. */
const SILENCE_MS = 500;

const { stores } = world();
let service: ServerProcess;
let partner: TestPartner;
let gameId: number;
let port: number;

beforeAll(async () => {
  service = await spawnService(environment(stores, { CELLS: '1' }));
  partner = await service.client.newPartner();
  gameId = await service.client.newGame(partner.key, parSheet('classic-3-reel'));
  port = portOf(service.base!);
});
afterAll(async () => {
  await service.stop();
});

/** What a server has done so far after it received some bytes. */
interface Outcome {
  /** Returns the statuses of the answers in order, and whether the connection is closed; see `Framing`. */
  shown(): string;
  end(): void;
}

/** Sends bytes on a new connection. */
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

/** Returns what the server that is tested must do. */
function expectedOf(each: Framing): string {
  if (IS_NEWER_BINDING && REFUSED_BY_NEWER_BINDING.has(each.name)) return '400 closed';
  if (IS_NEWER_BINDING && each.name.startsWith('cut after ')) return 'waits';
  return each[HTTP_SERVER];
}

const spinBody = (playerId: string): string => JSON.stringify({ gameId, playerId, wagerUsd: 0.25 });

test('answers or refuses each HTTP request correctly, and never serves a request hidden inside another', async () => {
  const cases = framingCases(partner.key, spinBody('framing'));
  const seen = await Promise.all(cases.map(async (each) => ({ ...each, outcome: await send(each.bytes) })));
  const differing = () =>
    seen
      .filter((each) => each.outcome.shown() !== expectedOf(each))
      .map((each) => `${each.name}: ${each.outcome.shown()}, not ${expectedOf(each)}`);
  await until(() => differing().length === 0, 'each is as expected').catch(() => {});
  // No more answers can arrive after this wait.
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

test('handles all 33 cases of h1spec as h1spec demands on node:http, and 24 or 33 on uWebSockets.js by its binding', () => {
  const cases = framingCases('', '').filter(({ h1spec }) => h1spec !== undefined);
  expect(cases).toHaveLength(33);
  const right = cases.filter((each) => H1SPEC[each.h1spec!].test(expectedOf(each)));
  expect(right.length).toBe(HTTP_SERVER === 'node' || IS_NEWER_BINDING ? 33 : 24);
});

describe('requests that arrive in two pieces', () => {
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

  /**
   * Returns whether the older binding of uWebSockets.js answers 505 to a request split at this byte. It does
   * so if the split is right after the space behind the method, or between the space behind the URL and the
   * end of the line.
   */
  const isForeign = (request: string, at: number): boolean => {
    const [first, second] = [request.indexOf(' ') + 1, request.indexOf(' ', request.indexOf(' ') + 1) + 1];
    if (HTTP_SERVER === 'node' || IS_NEWER_BINDING) return false;
    return at === first || (at >= second && at <= request.indexOf('\r\n') + 1);
  };

  test.each(shapes)('answers %s that arrives in two pieces, wherever it is split', async (_what, shape) => {
    const request = shape();
    const wires = await Promise.all(Array.from({ length: request.length - 1 }, () => Wire.open(port)));
    await Promise.all(wires.map((wire, at) => wire.send(Buffer.from(request.slice(0, at + 1), 'latin1'))));
    // Once the server has answered a request that was sent after the first pieces, it has read these pieces.
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

test('no framing case expects a 5xx answer except the 505 of uWebSockets.js for other versions than HTTP/1.1', () => {
  const statuses = framingCases('', '').flatMap(({ uws, node }) => `${uws} ${node}`.match(/5\d\d/g) ?? []);
  expect(new Set(statuses)).toEqual(new Set(['505']));
});
