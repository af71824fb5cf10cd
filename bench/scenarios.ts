/**
 * What is measured: one table of scenarios, the suites that they belong to, and the targets of each suite.
 *
 * A scenario is one start of one server and the periods of load that it then gets, one after the other. A period is named
 * `<scenario>/<period>`; goals and rates refer to it by that name.
 */
import type { Measurement } from './measurement.js';

/** `redis` is `echo` with one `SET` a request; `floor` the least that any design with these guarantees must do. */
export type ServerName = 'echo' | 'redis' | 'floor' | 'spindle' | 'fastify' | 'postgres';

/** How the service is set up. The baselines know one partner, one game and one process. */
export interface Shape {
  readonly ack: 'redis' | 'ledger';
  /** Processes with the http role, beside one with the worker role; 0: one process has both, which is the default. */
  readonly frontEnds: number;
  readonly partners: number;
  /** In all, dealt out to the partners in turn. */
  readonly games: number;
  readonly gameType: 'slot' | 'raffle';
  /**
   * Each slot game has a communal progressive, a community of 100 players and a budget that lasts; it fires each 10,000
   * spins, or each 1,000.
   */
  readonly communal?: 'rare' | 'often';
  /** The cells are on three primaries of a Redis Cluster, without replicas. */
  readonly isCluster?: boolean;
}

export interface Period {
  readonly name: string;
  readonly connections: number;
  /** Closed loop where there is none. Else a share of the spins/s of another period of the round, an earlier one. */
  readonly rate?: { readonly share: number; readonly of: string };
  /** Spins are for one of so many players, drawn at random. */
  readonly players: number;
  readonly hasRequestId: boolean;
  /** What is put into the service before this period, and stays. */
  readonly grow?: { readonly games?: number; readonly players?: number; readonly requestIds?: number };
}

export interface Scenario {
  readonly name: string;
  readonly suite: SuiteName;
  readonly server: ServerName;
  readonly shape: Shape;
  readonly periods: readonly Period[];
}

/** A comparison within a round, or a figure of one period; the median over the rounds is held against the bound. */
export interface Goal {
  readonly what: string;
  readonly atMost?: number;
  readonly atLeast?: number;
  /** Its parameter gives the period of this round with that name. */
  readonly value: (of: Of) => number;
}
type Of = (period: string) => Measurement;

export interface Suite {
  readonly about: string;
  readonly rounds: number;
  readonly seconds: number;
  /** Of a server that was just started, where it is not the usual time. */
  readonly warmUpSeconds?: number;
  readonly goals: readonly Goal[];
}

const SHAPE: Shape = { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' };
const PLAYERS = 1000;

const period = (connections: number, rest: Partial<Period> = {}): Period => ({
  name: String(connections),
  connections,
  players: PLAYERS,
  hasRequestId: true,
  ...rest,
});

const scenario = (
  suite: SuiteName,
  name: string,
  server: ServerName,
  periods: readonly Period[],
  shape: Partial<Shape> = {},
): Scenario => ({ suite, name, server, shape: { ...SHAPE, ...shape }, periods });

const THIRD = period(64, { name: 'third', rate: { share: 1 / 3, of: 'spindle/64' } });
const HALF = period(64, { name: 'half', rate: { share: 0.5, of: 'spindle/64' } });
const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const OPEN = SHARES.map((share) =>
  period(64, { name: `${Math.round(share * 100)} %`, rate: { share, of: 'spindle-open/64' } }),
);
const CLOSED = [1, 8, 64, 256].map((connections) => period(connections));

const MANY_GAMES = 1000;
const MANY_PLAYERS = 1_000_000;
const MANY_REQUEST_IDS = 10_000_000;
const BEFORE = period(64, { name: 'before' });

export const SCENARIOS: readonly Scenario[] = [
  scenario('targets', 'spindle', 'spindle', [period(64), THIRD, HALF, period(256)]),
  scenario('targets', 'echo', 'echo', [period(64), HALF, period(256)]),
  scenario('targets', 'redis', 'redis', [HALF]),
  scenario('targets', 'floor', 'floor', [period(64), period(256)]),
  scenario('targets', 'spindle-ledger', 'spindle', [period(64), period(256)], { ack: 'ledger' }),
  scenario('targets', 'fastify', 'fastify', [period(64), period(256)]),
  scenario('targets', 'postgres', 'postgres', [period(64)]),

  scenario('closed', 'spindle-closed', 'spindle', CLOSED),
  scenario('closed', 'echo-closed', 'echo', CLOSED),

  scenario('open', 'spindle-open', 'spindle', [period(64), ...OPEN]),
  scenario('open', 'echo-open', 'echo', OPEN),

  scenario('kinds', 'one', 'spindle', [period(64)]),
  scenario('kinds', 'no-request-id', 'spindle', [period(64, { hasRequestId: false })]),
  scenario('kinds', 'partners-100', 'spindle', [period(64, { players: PLAYERS / 100 })], {
    partners: 100,
    games: 100,
  }),
  scenario('kinds', 'games-1000', 'spindle', [period(64)], { games: MANY_GAMES }),
  scenario('kinds', 'ack-ledger', 'spindle', [period(64), period(256)], { ack: 'ledger' }),
  scenario('kinds', 'raffle', 'spindle', [period(64), period(256)], { gameType: 'raffle' }),

  scenario('communal', 'plain', 'spindle', [period(64), period(256)]),
  scenario('communal', 'communal', 'spindle', [period(64), period(256)], { communal: 'rare' }),
  scenario('communal', 'communal-often', 'spindle', [period(64), period(256)], { communal: 'often' }),

  ...[1, 2, 3, 4].map((frontEnds) =>
    scenario('frontEnds', `front-ends-${frontEnds}`, 'spindle', [period(64), period(256)], { frontEnds }),
  ),

  scenario('growth', 'games', 'spindle', [
    BEFORE,
    period(64, { name: 'after', grow: { games: MANY_GAMES } }),
  ]),
  scenario('growth', 'players', 'spindle', [
    BEFORE,
    period(64, { name: 'after', players: MANY_PLAYERS, grow: { players: MANY_PLAYERS } }),
  ]),
  scenario('growth', 'request-ids', 'spindle', [
    BEFORE,
    period(64, { name: 'after', grow: { requestIds: MANY_REQUEST_IDS } }),
  ]),
];

const cpu = (m: Measurement): number => m.cpuPerSpin.total!;
const rate = (m: Measurement): number => m.spinsPerSecond;
const p99 = (m: Measurement): number => m.load.p99Ms;

export const SUITES = {
  targets: {
    about: 'Spindle beside its baselines, and its targets',
    rounds: 3,
    seconds: 8,
    goals: [
      ...[64, 256].flatMap((connections) => [
        {
          what: `total CPU per spin, Spindle / floor, ${connections} connections`,
          atMost: 1.5,
          value: (of: Of) => cpu(of(`spindle/${connections}`)) / cpu(of(`floor/${connections}`)),
        },
        {
          what: `total CPU per spin, Spindle / echo, ${connections} connections`,
          atMost: 2.5,
          value: (of: Of) => cpu(of(`spindle/${connections}`)) / cpu(of(`echo/${connections}`)),
        },
        {
          what: `spins/s, Spindle / echo, ${connections} connections`,
          atLeast: 0.4,
          value: (of: Of) => rate(of(`spindle/${connections}`)) / rate(of(`echo/${connections}`)),
        },
        {
          what: `spins/s, Spindle / Fastify, ${connections} connections`,
          atLeast: 3.5,
          value: (of: Of) => rate(of(`spindle/${connections}`)) / rate(of(`fastify/${connections}`)),
        },
      ]),
      {
        what: 'spins/s, Spindle / Postgres, 64 connections',
        atLeast: 15,
        value: (of) => rate(of('spindle/64')) / rate(of('postgres/64')),
      },
      {
        what: "p99 at half of Spindle's capacity, Spindle / echo",
        atMost: 5,
        value: (of) => p99(of('spindle/half')) / p99(of('echo/half')),
      },
      {
        what: "p99 at half of Spindle's capacity, Spindle / a bare Redis with one synced SET a request",
        atMost: 2,
        value: (of) => p99(of('spindle/half')) / p99(of('redis/half')),
      },
      {
        what: "total CPU per spin, an open loop at a third of Spindle's capacity / at saturation, 64 connections",
        atMost: 1.7,
        value: (of) => cpu(of('spindle/third')) / cpu(of('spindle/64')),
      },
      {
        what: 'flush lag p99 at full load, seconds',
        atMost: 1,
        value: (of) => of('spindle/256').flushLag!.p99Ms / 1000,
      },
      {
        what: 'spins/s, ACK=ledger / ACK=redis, 256 connections',
        atLeast: 0.75,
        value: (of) => rate(of('spindle-ledger/256')) / rate(of('spindle/256')),
      },
      {
        what: 'spins/s, ACK=ledger / ACK=redis, 64 connections',
        atLeast: 0.6,
        value: (of) => rate(of('spindle-ledger/64')) / rate(of('spindle/64')),
      },
    ],
  },
  closed: { about: 'Closed loop, 1 to 256 connections', rounds: 1, seconds: 6, goals: [] },
  open: {
    about: 'Open loop, 10 % to 90 % of what Spindle does in a closed loop with 64 connections',
    rounds: 1,
    seconds: 5,
    goals: [],
  },
  kinds: {
    about: 'Spindle: partners, games, requestIds, raffles, acknowledgement',
    rounds: 1,
    seconds: 6,
    goals: [],
  },
  communal: {
    about: 'Spindle: games with a communal progressive that fires, beside games without',
    rounds: 3,
    seconds: 6,
    goals: [64, 256].map((connections) => ({
      what: `total CPU per spin, with a communal progressive / without, ${connections} connections`,
      atMost: 1.05,
      value: (of: Of) => cpu(of(`communal/${connections}`)) / cpu(of(`plain/${connections}`)),
    })),
  },
  frontEnds: {
    about: 'Spindle: one to four front ends on one port, and a worker',
    rounds: 1,
    seconds: 6,
    goals: [],
  },
  growth: {
    about: 'Spindle: what a spin costs as its stores grow',
    rounds: 3,
    seconds: 8,
    // What comes after must not be cheaper only because the program has run for longer.
    warmUpSeconds: 8,
    goals: [
      {
        what: `CPU per spin, ${MANY_GAMES.toLocaleString('en')} games / 1`,
        atMost: 1.1,
        value: (of) => cpu(of('games/after')) / cpu(of('games/before')),
      },
      {
        what: `CPU per spin, ${MANY_PLAYERS.toLocaleString('en')} players / ${PLAYERS.toLocaleString('en')}`,
        atMost: 1.1,
        value: (of) => cpu(of('players/after')) / cpu(of('players/before')),
      },
      {
        what: `CPU per spin, ${MANY_REQUEST_IDS.toLocaleString('en')} bound requestIds / 0`,
        atMost: 1.1,
        value: (of) => cpu(of('request-ids/after')) / cpu(of('request-ids/before')),
      },
      {
        what: 'bytes of Redis per bound requestId',
        atMost: 100,
        value: (of) => of('request-ids/after').grown!.bytesEach,
      },
      {
        what: 'bytes of Redis per player',
        atMost: 100,
        value: (of) => of('players/after').grown!.bytesEach,
      },
      {
        what: 'bytes of Redis per queued outcome',
        atMost: 4,
        value: (of) => of('games/after').grown!.bytesEach,
      },
    ],
  },
} as const satisfies Record<string, Suite>;

export type SuiteName = keyof typeof SUITES;
