/** Tests the load generator: each request is unique, and each answer is counted once. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadByAutocannon } from '../../bench/autocannonLoad.js';
import { SpinRequests } from '../../bench/spinRequests.js';

describe('requests rendered for a load test', () => {
  const targets = [
    { apiKey: 'ks_a', gameId: 7, wagerUsd: 0.25 },
    { apiKey: 'ks_b', gameId: 1234, wagerUsd: 0.5 },
  ];
  const order = {
    base: 'http://127.0.0.1:8080',
    path: '/spin',
    targets,
    connections: 1,
    players: 50,
    hasRequestId: true,
    seconds: 1,
    rate: undefined,
    requestIdPrefix: 'f'.repeat(23),
  };
  const render = (requests: SpinRequests) => {
    const [head, body] = requests.next().toString().split('\r\n\r\n') as [string, string];
    const length = Number(/Content-Length: (\d+)/.exec(head)?.[1]);
    expect(body).toHaveLength(length);
    return { apiKey: /X-API-Key: (.+)/.exec(head)?.[1], ...JSON.parse(body) };
  };

  it('renders requests with unique request ids, all players and targets, and the right key for each game', () => {
    const requests = new SpinRequests(order);
    const spins = Array.from({ length: 2000 }, () => render(requests));
    expect(new Set(spins.map(({ requestId }) => requestId)).size).toBe(2000);
    for (const { requestId } of spins) expect(requestId).toMatch(/^f{23}-\d{12}$/);
    expect(new Set(spins.map(({ playerId }) => playerId)).size).toBe(50);
    for (const { playerId } of spins) expect(playerId).toMatch(/^player-100000[0-4]\d$/);
    expect(new Set(spins.map(({ gameId, apiKey, wagerUsd }) => `${apiKey} ${gameId} ${wagerUsd}`))).toEqual(
      new Set(targets.map(({ gameId, apiKey, wagerUsd }) => `${apiKey} ${gameId} ${wagerUsd}`)),
    );
  });

  it('plays the n-th target with a frequency proportional to 1/n if Zipf is wanted', () => {
    const requests = new SpinRequests({ ...order, isZipf: true });
    const games = Array.from({ length: 6000 }, () => render(requests).gameId);
    const share = games.filter((gameId) => gameId === 7).length / games.length;
    // The expected share is 2/3, and its standard deviation is 0.006.
    expect(share).toBeGreaterThan(0.62);
    expect(share).toBeLessThan(0.71);
  });

  it('renders requests without a request id if none is wanted', () => {
    expect(render(new SpinRequests({ ...order, hasRequestId: false }))).not.toHaveProperty('requestId');
  });
});

describe('the load generator', () => {
  let server: Server;
  const seen: string[] = [];
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const { requestId } = JSON.parse(text) as { requestId: string };
      seen.push(requestId);
      const body = JSON.stringify({ pad: 'x'.repeat(seen.length % 9000), requestId });
      response.writeHead(seen.length % 5 === 0 ? 503 : 200, { 'Content-Length': body.length }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const load = async (seconds: number, rate: number | undefined) => {
    seen.length = 0;
    return loadByAutocannon({
      base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      path: '/spin',
      targets: [{ apiKey: 'k', gameId: 7, wagerUsd: 0.25 }],
      connections: 8,
      players: 50,
      hasRequestId: true,
      requestIdPrefix: 'f'.repeat(23),
      seconds,
      rate,
    });
  };

  it('the load generator counts each answer once and never repeats a request id', async () => {
    const { spins, non2xx, errors, statuses, p50Ms, maxMs } = await load(0.3, undefined);
    expect(errors).toBe(0);
    expect(spins + non2xx).toBe(seen.length);
    expect(statuses[503]).toBe(Math.floor(seen.length / 5));
    expect(new Set(seen).size).toBe(seen.length);
    expect(p50Ms).toBeGreaterThan(0);
    expect(maxMs).toBeGreaterThanOrEqual(p50Ms);
  });

  it('the load generator sends exactly the requests that are due in an open loop', async () => {
    const { spins, non2xx, errors, lateP99Ms } = await load(0.5, 200);
    expect({ answers: spins + non2xx, errors }).toEqual({ answers: 100, errors: 0 });
    expect(lateP99Ms).toBeGreaterThan(0);
  });
});
