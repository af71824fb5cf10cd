/** The load generator's own parts: each request is one of its own, and each answer is counted once, however it arrives. */
import { describe, expect, it } from 'vitest';
import { AnswerReader } from '../../bench/answerReader.js';
import { SpinRequests } from '../../bench/spinRequests.js';

const answer = (status: number, body: string, more = ''): Buffer =>
  Buffer.from(`HTTP/1.1 ${status} Any\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`);

describe('the reader of answers', () => {
  it('counts an answer once, wherever it is cut', () => {
    const whole = answer(200, '{"status":"success"}', 'X-Request-Id: 1\r\n');
    for (let cut = 1; cut < whole.length; cut++) {
      const reader = new AnswerReader();
      expect(reader.read(whole.subarray(0, cut))).toBeUndefined();
      expect(reader.read(whole.subarray(cut))).toBe(200);
    }
  });

  it('follows a head that changes from answer to answer', () => {
    const reader = new AnswerReader();
    expect(reader.read(answer(200, '12345678'))).toBe(200);
    expect(reader.read(answer(200, '123456789012'))).toBe(200);
    expect(reader.read(answer(429, '{}', 'Retry-After: 3\r\n'))).toBe(429);
    expect(reader.read(answer(503, ''))).toBe(503);
    expect(reader.read(answer(200, '12345678', 'Length: 9\r\n'))).toBe(200);
  });

  it('refuses what goes on after its end, and what tells no length', () => {
    const two = Buffer.concat([answer(200, '{}'), answer(200, '{}')]);
    expect(() => new AnswerReader().read(two)).toThrow('not asked');
    const chunked = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n');
    expect(() => new AnswerReader().read(chunked)).toThrow('No answer to count');
  });
});

describe('the rendered requests', () => {
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
    const bytes = Buffer.alloc(requests.length);
    requests.writeNext(bytes);
    const [head, body] = bytes.toString().split('\r\n\r\n') as [string, string];
    const length = Number(/Content-Length: (\d+)/.exec(head)?.[1]);
    expect(body).toHaveLength(length);
    return { apiKey: /X-API-Key: (.+)/.exec(head)?.[1], ...JSON.parse(body) };
  };

  it('never repeat a request id, use all players and targets, and pair each game with its key', () => {
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

  it('bear no request id where none is wanted', () => {
    expect(render(new SpinRequests({ ...order, hasRequestId: false }))).not.toHaveProperty('requestId');
  });
});
