/**
 * Plays blackjack rounds on many connections while the service, Redis and Postgres are killed. Every round
 * must be settled according to its shoe and actions, every retried answer must have the same bytes, the
 * balances must be exact, and the audit must be clean.
 */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { bodyOf } from '../../src/api/client/apiClients.js';
import type { Cleanup } from '../support/cleanup.js';
import { runToEnd } from '../support/cleanup.js';
import { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { type FaultName, faultKind } from './faults.js';
import { audit } from './round.js';
import { OPENING_USD, RoundPlayers, RULES, WAGER_USD } from './roundPlayers.js';

const KILLS: readonly FaultName[] = ['kill-service', 'kill-worker', 'kill-redis', 'kill-postgres'];
const READY_WITHIN_MS = 60_000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '64' },
    seed: { type: 'string', default: randomBytes(4).toString('hex') },
    'kill-every': { type: 'string', default: '1500,6000' },
    calm: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});

async function trouble(stage: Arena, seed: string, isOver: () => boolean): Promise<string> {
  const random = new Random(seed, 'kills');
  const done: Record<string, number> = {};
  const [least, most] = values['kill-every'].split(',').map(Number) as [number, number];
  while (!values.calm && !isOver()) {
    await pause(random.whole(least, most));
    if (isOver()) break;
    const name = random.pick(KILLS);
    await faultKind(name).run({ ...stage, targets: [] }, random);
    done[name] = (done[name] ?? 0) + 1;
  }
  return Object.entries(done)
    .map(([name, times]) => `${name} ${times}`)
    .join(', ');
}

async function newTable({ api }: Arena, id: number, rules: object, name: string): Promise<number> {
  const body = { displayName: name, configName: name, wagerUsd: WAGER_USD, rules };
  const made = await bodyOf(
    api.operator.POST('/partners/{id}/blackjack-games', { params: { path: { id } }, body }),
  );
  const path = { id: made.gameConfigId };
  await until(async () => {
    const { queue } = await bodyOf(api.operator.GET('/games/{id}', { params: { path } }));
    return queue.outcomesReady > 0;
  }, 'the table has shoes');
  return made.gameConfigId;
}

async function run(cleanup: Cleanup): Promise<boolean> {
  const { seed } = values;
  const arena = await openArena(cleanup, { keep: values.keep, acknowledgement: 'redis' });
  const owner = await arena.api.newPartner('rounds', { openingBalanceUsd: OPENING_USD });
  const tables: number[] = [];
  for (const [i, rules] of RULES.entries())
    tables.push(await newTable(arena, owner.partnerId, rules, `T_${i}`));
  const players = new RoundPlayers({
    port: () => arena.fleet.port,
    key: owner.key,
    tables,
    connections: Number(values.connections),
    seed,
  });
  const started = performance.now();
  let isOver = false;
  const faults = trouble(arena, seed, () => isOver);
  await players.play(Number(values.rounds));
  isOver = true;
  const seconds = (performance.now() - started) / 1000;
  const troubles = await faults;
  await until(() => arena.fleet.isReady(), 'every process is ready', READY_WITHIN_MS);
  const wrong = [...(await players.judge(arena.stores.postgres.url)), ...arena.crashes];
  const complaint = await audit(arena.stores, []);
  if (complaint !== undefined) wrong.push(complaint);
  const { rounds, actions, again } = players;
  console.log(
    `${rounds} rounds with ${actions} actions on ${values.connections} connections in ${seconds.toFixed(1)} s: ` +
      `${wrong.length === 0 ? 'exact, the audit is clean' : 'WRONG'}; ${again} requests sent again; ${troubles || 'no trouble'}`,
  );
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  await arena.fleet.stop();
  return wrong.length === 0;
}

console.log(`seed ${values.seed}`);
await runToEnd(run);
