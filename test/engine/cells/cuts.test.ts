/**
 * Cuts the connection between a front end and Redis at any byte of a spin's call or reply. Each spin must be
 * dealt at most once, and the response to the partner must be true.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { Client, TestPartner } from '../../support/client.js';
import { type Cable, proxy, type Way } from '../../support/proxy.js';
import { isSpinCall } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';
import { codeOf, type SpinAnswer, type Verdict, Witness } from '../../support/witness.js';

/** A front end whose connection to Redis goes through a proxy of its own. */
interface Lane {
  readonly isPatient: boolean;
  readonly client: Client;
  readonly cable: Cable;
  readonly stop: () => Promise<void>;
}

/** Distance between two positions at which a request is cut, in bytes. Replies are cut at every byte. */
const REQUEST_STEP = 13;
/** Length of the reply in bytes: `$33 CRLF`, 6 for the time, 8 for the partner, 19 for the spin, and CRLF. */
const ANSWER_BYTES = 5 + 33 + 2;
/** The client library then has the whole reply except for the last byte of its CRLF. */
const WHOLE_BYTES = ANSWER_BYTES - 1;
/**
 * Deadlines of the front ends, in ms: a patient one has time to reconnect, and an impatient one only has time
 * for a single call. Also the time after which an impatient front end accepts spins again.
 */
const PATIENT_MS = 60_000;
const IMPATIENT_MS = 120;
const CUTS_OF_WORKER = 8;
/** Cuts at odd byte positions use RST, and cuts at even positions use FIN. */
const isByReset = (bytes: number): boolean => bytes % 2 === 1;

const { stores } = world();
/** Process that serves requests and writes to the stores over connections that are never cut. */
let worker: Awaited<ReturnType<typeof startService>>;
let patient: Lane[];
let impatient: Lane[];
let partner: TestPartner;
let gameId: number;
let witness: Witness;

beforeAll(async () => {
  worker = await startService(stores, { CELLS: '1' });
  const lane = async (deadlineMs: number): Promise<Lane> => {
    const cable = await proxy(stores.redisUrl);
    const front = await startService(
      { redisUrl: cable.url, databaseUrl: stores.databaseUrl },
      { CELLS: '1', ROLES: 'http', SPIN_DEADLINE_MS: String(deadlineMs) },
    );
    return {
      isPatient: deadlineMs === PATIENT_MS,
      client: front,
      cable,
      stop: async () => {
        await front.stop();
        await cable.close();
      },
    };
  };
  patient = await Promise.all([lane(PATIENT_MS), lane(PATIENT_MS)]);
  impatient = await Promise.all([lane(IMPATIENT_MS), lane(IMPATIENT_MS)]);
  partner = await worker.newPartner();
  gameId = await worker.newGame(partner.key, parSheet('classic-3-reel'));
});

beforeEach(() => {
  disturbed = 0;
  witness = new Witness(stores, partner, gameId);
  return () => witness.close();
});

afterAll(async () => {
  await Promise.all([...patient, ...impatient].map((lane) => lane.stop()));
  await worker.stop();
});

const dealsAgain = ({ client }: Lane): Promise<void> =>
  until(
    async () =>
      (await client.spin<SpinAnswer>(partner.key, { gameId, playerId: 'probe', wagerUsd: 0.25 })).status ===
      200,
    'the front end deals again',
  );

interface Round {
  readonly way: Way;
  /**
   * Number of bytes before the cut, counted from the first byte of the call or of the data that follows it.
   */
  readonly bytes: number;
  readonly isNamed: boolean;
  readonly spins?: number;
  /** Number of cuts of the call, including its retries. */
  readonly times?: number;
  /**
   * Number of spins that are sent afterwards, one after the other. If the cut comes after the first reply, it
   * falls into one of their replies.
   */
  readonly after?: number;
}

/** Sends spins while the connection is cut. Returns the number of calls and how many of them were cut. */
async function cutting(
  lane: Lane,
  round: Round,
): Promise<{ calls: number; cuts: number; isDisturbed: boolean; isTold: boolean; firstMs: number }> {
  const { way, bytes, isNamed, spins = 1, times = 1, after = 0 } = round;
  const { cable } = lane;
  await dealsAgain(lane);
  let calls = 0;
  let cuts = 0;
  let isDisturbed = false;
  cable.beforeRequest = (chunk) => {
    if (/config/i.test(chunk.toString('latin1'))) isDisturbed = true;
    if (isSpinCall(chunk) && ++calls <= times) {
      void cable.cutAfter(way, bytes, isByReset(bytes)).then(() => {
        cuts++;
        cable.accepts = lane.isPatient;
      });
    }
  };
  const started = performance.now();
  const first = await Promise.all(Array.from({ length: spins }, () => witness.spin(lane.client, isNamed)));
  const firstMs = performance.now() - started;
  const isTold = first.every((asked) => codeOf(asked) === '200');
  for (let i = 0; i < after; i++) await witness.spin(lane.client, isNamed);
  // On a busy machine a reply may come after the deadline, and a batch may be too short to reach the cut
  // position. A spin that times out before it is sent causes no cut.
  if (calls === 0) isDisturbed = true;
  else if (spins === 1)
    await until(() => cuts === times, `the connection is cut after ${bytes} bytes of ${way}`);
  cable.beforeRequest = () => {};
  cable.disarm();
  cable.accepts = true;
  return { calls, cuts, isDisturbed, isTold, firstMs };
}

/**
 * Number of rounds in which the cut may have hit a read of Redis's settings, or in which the spin timed out
 * before it was sent.
 */
let disturbed = 0;

/**
 * Runs the rounds on all front ends in parallel. Returns the rounds in which no data but the call was in
 * flight.
 */
async function cuttingAll(lanes: readonly Lane[], rounds: readonly Round[]) {
  const left = [...rounds];
  const done: (Round & Omit<Awaited<ReturnType<typeof cutting>>, 'isDisturbed'>)[] = [];
  await Promise.all(
    lanes.map(async (lane) => {
      for (let round = left.shift(); round !== undefined; round = left.shift()) {
        const { isDisturbed, ...seen } = await cutting(lane, round);
        if (isDisturbed) disturbed++;
        else done.push({ ...round, ...seen });
      }
    }),
  );
  return done;
}

async function judged(lane: Lane): Promise<Verdict> {
  await dealsAgain(lane);
  await witness.resolve(lane.client);
  await witness.flushed(worker);
  const verdict = await witness.judge();
  expect(verdict.wrong).toEqual([]);
  return verdict;
}

/**
 * Measures the length of one spin's call. Takes the minimum of a few calls, because a chunk may contain other
 * commands.
 */
async function callBytes(lane: Lane, isNamed: boolean): Promise<number> {
  await dealsAgain(lane);
  const seen: number[] = [];
  lane.cable.beforeRequest = (chunk) => {
    if (isSpinCall(chunk)) seen.push(chunk.length);
  };
  for (let i = 0; i < 3; i++) await witness.spin(lane.client, isNamed);
  lane.cable.beforeRequest = () => {};
  return Math.min(...seen);
}

/** Returns rounds whose cuts lie all along the call and slightly beyond its end. */
async function requestCuts(lane: Lane): Promise<Round[]> {
  const rounds: Round[] = [];
  for (const isNamed of [true, false]) {
    const length = await callBytes(lane, isNamed);
    expect(length).toBeGreaterThan(300);
    for (let bytes = isNamed ? 0 : 5; bytes < length; bytes += REQUEST_STEP) {
      rounds.push({ way: 'requests', bytes, isNamed });
    }
    for (const bytes of [length - 1, length]) rounds.push({ way: 'requests', bytes, isNamed });
  }
  return rounds;
}

const answerCuts: readonly Round[] = [true, false].flatMap((isNamed) =>
  Array.from({ length: ANSWER_BYTES + 1 }, (_, bytes): Round => ({ way: 'answers', bytes, isNamed })),
);

test('a spin whose call to Redis is cut is retried before the deadline, answered, and dealt once', async () => {
  const done = await cuttingAll(patient, await requestCuts(patient[0]!));
  expect(done.filter(({ cuts, calls }) => cuts !== 1 || calls < 2)).toEqual([]);
  const { answers } = await judged(patient[0]!);
  expect(Object.keys(answers)).toEqual(['200']);
});

test('a spin whose Redis reply is cut is retried before the deadline, answered, and dealt once', async () => {
  const done = await cuttingAll(patient, answerCuts);
  expect(done.filter(({ cuts }) => cuts !== 1)).toEqual([]);
  const isRight = ({ bytes, calls }: { bytes: number; calls: number }): boolean => {
    if (bytes < WHOLE_BYTES) return calls === 2;
    // An RST also discards a whole reply that the front end has not read yet. A cut acts like an RST if the
    // proxy left bytes unread.
    return calls === 1 || calls === 2;
  };
  expect(done.filter((round) => !isRight(round))).toEqual([]);
  const { answers } = await judged(patient[0]!);
  expect(Object.keys(answers)).toEqual(['200']);
});

test('a spin whose call to Redis is cut without time for a retry is reported as in doubt', async () => {
  const done = await cuttingAll(impatient, await requestCuts(patient[0]!));
  expect(done.filter(({ cuts }) => cuts !== 1)).toEqual([]);
  const { answers } = await judged(impatient[0]!);
  expect(answers['KS-4110']).toBeGreaterThan(done.length / 4);
  expect(answers['KS-5002']).toBeGreaterThan(done.length / 4);
});

test('a spin whose Redis reply is cut without time for a retry is reported as in doubt', async () => {
  const beyond = [1, 4, 9, 17, 33, 40].flatMap((more): Round[] =>
    [true, false].map((isNamed) => ({ way: 'answers', bytes: ANSWER_BYTES + more, isNamed, after: 1 })),
  );
  const done = await cuttingAll(impatient, [...answerCuts, ...beyond]);
  expect(done.filter(({ cuts }) => cuts !== 1)).toEqual([]);
  const { answers, happened } = await judged(impatient[0]!);
  expect(answers['KS-4110']).toBeGreaterThan(ANSWER_BYTES / 2);
  expect(answers['KS-5002']).toBeGreaterThan(ANSWER_BYTES / 2);
  // A spin whose cut comes after its reply is answered unless the reply was late.
  const answered = done.filter(({ after }) => after !== undefined);
  expect(answered.filter(({ isTold, firstMs }) => !isTold && firstMs < IMPATIENT_MS - 5)).toEqual([]);
  expect(answered.filter(({ isTold }) => isTold).length).toBeGreaterThan(0);
  // Redis received each call completely, except for the calls of spins that followed a cut.
  const inDoubt = answers['KS-4110']! + answers['KS-5002']!;
  expect(happened).toBeLessThanOrEqual(inDoubt);
  expect(happened).toBeGreaterThanOrEqual(inDoubt - disturbed - beyond.length);
});

test('a spin is dealt once even if each retry of its call to Redis is cut as well', async () => {
  const rounds = [0, 1, 15, 37, WHOLE_BYTES - 1].flatMap((bytes): Round[] =>
    [true, false].map((isNamed) => ({
      way: 'answers',
      bytes,
      isNamed,
      times: 4,
    })),
  );
  for (const bytes of [3, 170, 333])
    rounds.push({ way: 'requests', bytes, isNamed: bytes % 2 === 1, times: 4 });
  const done = await cuttingAll(patient, rounds);
  expect(done.filter(({ cuts, calls }) => cuts !== 4 || calls !== 5)).toEqual([]);
  const { answers } = await judged(patient[0]!);
  expect(Object.keys(answers)).toEqual(['200']);
});

test('each spin of a large batch is dealt at most once if the connection to Redis is cut', async () => {
  const rounds: Round[] = [];
  for (const isNamed of [true, false]) {
    for (const bytes of [200, 777, 1400, 1999]) rounds.push({ way: 'requests', bytes, isNamed, spins: 40 });
    for (const bytes of [0, 14, 25, 60, 233, 390]) rounds.push({ way: 'answers', bytes, isNamed, spins: 40 });
  }
  const done = await cuttingAll([...patient, ...impatient], rounds);
  // The batch may have had too few spins to reach the cut position.
  expect(done.filter(({ cuts }) => cuts === 1).length).toBeGreaterThan(done.length / 2);
  await judged(patient[0]!);
});

test('replies that Redis sends long after the deadline are not used as responses to other spins', async () => {
  const lane = impatient[0]!;
  let held = 0;
  for (let round = 0; round < 5; round++) {
    await dealsAgain(lane);
    lane.cable.hold();
    lane.cable.beforeRequest = (chunk) => {
      if (isSpinCall(chunk)) held++;
    };
    const begun = witness.asked.length;
    // Each batch times out before the next batch is sent, and Redis answers all of them later.
    for (let i = 0; i < 4; i++) await witness.spin(lane.client, i % 2 === 0);
    const codes = witness.asked.slice(begun).map(codeOf);
    // On a stalled machine a spin may time out before it is sent. Such a spin is refused.
    expect(codes.map((code, i) => (i % 2 === 0 && code === 'KS-4110' ? 'KS-5002' : code))).toEqual(
      codes.map(() => 'KS-5002'),
    );
    lane.cable.beforeRequest = () => {};
    lane.cable.release();
    for (let i = 0; i < 6; i++) await witness.spin(lane.client, i % 2 === 0);
  }
  expect(held).toBeGreaterThan(10);
  const { answers, happened } = await judged(lane);
  expect(answers['KS-4110']).toBeGreaterThan(5);
  expect(happened).toBeGreaterThanOrEqual(held);
});

test('spins whose Redis replies never come are in doubt until a new connection reports their results', async () => {
  const lane = impatient[1]!;
  await dealsAgain(lane);
  lane.cable.answers = false;
  await Promise.all(Array.from({ length: 10 }, (_, i) => witness.spin(lane.client, i % 2 === 0)));
  // The connection is cut because its reply stream lacks the swallowed replies.
  lane.cable.cut();
  lane.cable.answers = true;
  const { answers } = await judged(lane);
  const { 'KS-4110': inDoubt = 0, 'KS-5002': refused = 0 } = answers;
  // Half of the ten spins have a requestId. On a stalled machine some spins may time out before they are
  // sent.
  expect(inDoubt + refused).toBe(10);
  expect(refused).toBeGreaterThanOrEqual(5);
  expect(inDoubt).toBeGreaterThan(0);
});

test('commits every spin exactly once while the worker’s connections to Redis are cut repeatedly', async () => {
  await worker.stop();
  const cable = await proxy(stores.redisUrl);
  const cutWorker = await startService(
    { redisUrl: cable.url, databaseUrl: stores.databaseUrl },
    { CELLS: '1', ROLES: 'worker' },
  );
  let cuts = 0;
  let isOver = false;
  try {
    const spinning = Promise.all(patient.map(({ client }) => witness.keepSpinning(client, 4, () => isOver)));
    // The cuts range from the first bytes of a connection to the middle of its traffic under load, in both
    // directions.
    for (; cuts < CUTS_OF_WORKER; cuts++) {
      await cable.cutAfter(cuts % 2 === 0 ? 'answers' : 'requests', (cuts * 613) % 5003, cuts % 3 === 0);
    }
    isOver = true;
    await spinning;
    await witness.flushed(patient[0]!.client);
  } finally {
    isOver = true;
    cable.disarm();
    await cutWorker.stop();
    await cable.close();
    worker = await startService(stores, { CELLS: '1' });
  }
  const { answers } = await judged(patient[0]!);
  expect(Object.keys(answers)).toEqual(['200']);
  expect(answers['200']).toBeGreaterThan(cuts);
});
