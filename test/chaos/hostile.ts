/**
 * `npm run chaos -- hostile [--seconds 60]`
 *
 * Runs every attack of strangers and of another partner at once while a victim partner spins. The limits of
 * the victim's p99 are:
 * - three times its quiet value under all attacks together
 * - 1.5 times under a flood of one partner alone
 * - three times that under each of these alone: a partner's reads up to its limit at once, uploads of
 *   strangers in chunks of one byte, HEAD requests of a stranger, receivers that stream without end, and
 *   sessions that renew themselves
 *
 * The victim's games must not run dry beside another partner's extreme sheets, no answer may be lost, the
 * memory must stay constant, and the audit must find nothing. Exit status 1 means that one of these failed.
 * `HTTP_SERVER=node` attacks the other HTTP server.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runToEnd } from '../support/cleanup.js';
import { plainRequest, portOf, spinRequest } from '../support/load.js';
import { constants, environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { ownStores } from '../support/stores.js';
import { pause } from '../support/wait.js';
import type { AttackOrder, AttackReport } from './attacker.js';
import { playBesideExtremeSheets } from './extremeSheets.js';
import { endAttack, type LoneOutcome, loneAttacks, playAlone, showLone } from './loneAttacks.js';
import { audit } from './round.js';
import { type Phase, percentile, ratioOf, residentMb, spinFor } from './victim.js';

const SLOW = 500;
const UPLOADS = 200;
const CHUNKS_OF_UPLOAD = 66_000;
const IDLE = 5000;
const FLOOD_CONNECTIONS = 32;
const FLOOD_PER_SECOND = 1000;
const WARM_UP_SECONDS = 5;
const PARTNER_RATIO_MAX = 1.5;
const UPLOADS_RATIO_MAX = 3;
const ALL_RATIO_MAX = 3;
const GROWTH_MB_MAX = 50;

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } });
const seconds = Number(values.seconds);
const ATTACKER = fileURLToPath(new URL('./attacker.js', import.meta.url));

const CHUNKED_UPLOAD =
  `POST /api/partner/v1/games HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n` +
  '1\r\na\r\n'.repeat(CHUNKS_OF_UPLOAD);

function show(name: string, { times, lost, busy }: Phase): void {
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(times, share).toFixed(1));
  console.log(
    `${name}: ${times.length} spins, p50 ${p50} ms, p99 ${p99} ms, ${lost} without a 200; the service takes ${(busy * 100).toFixed(0)} % of a core`,
  );
}

function showAttack(name: string, { answers, connectionsOpened, cpuSeconds }: AttackReport): void {
  console.log(
    `${name}: answers by status ${JSON.stringify(answers)}, ${connectionsOpened} connections opened, ${cpuSeconds.toFixed(1)} s of the processor in its own process`,
  );
}

/**
 * Prints the measurements.
 * @returns whether all of them are within their limits
 */
function judge(
  { quiet, partner, uploads, all }: Readonly<Record<'quiet' | 'partner' | 'uploads' | 'all', Phase>>,
  lone: readonly LoneOutcome[],
  beside: Readonly<Record<string, number>>,
  grownMb: Readonly<Record<string, number>>,
  faults: string | undefined,
): boolean {
  show('quiet', quiet);
  show('a partner floods', partner);
  show('and strangers upload', uploads);
  show('everything at once', all);
  const ratios = [
    ['while a partner floods / quiet', ratioOf(partner, quiet), PARTNER_RATIO_MAX],
    ['while strangers upload, too / without', ratioOf(uploads, partner), UPLOADS_RATIO_MAX],
    ['under everything / quiet', ratioOf(all, quiet), ALL_RATIO_MAX],
  ] as const;
  for (const [when, ratio, most] of ratios)
    console.log(`p99 ${when}: ${ratio.toFixed(2)}, at most ${most}${ratio < most ? '' : ': MISSED'}`);
  const areLoneHeld = lone.map(showLone).every(Boolean);
  console.log(`beside 80 games on sheets of extreme decimals: ${JSON.stringify(beside)}`);
  for (const [when, mb] of Object.entries(grownMb))
    console.log(
      `memory ${when}: ${mb.toFixed(0)} MB more, at most ${GROWTH_MB_MAX}${mb < GROWTH_MB_MAX ? '' : ': MISSED'}`,
    );
  console.log(`audit: ${faults ?? 'clean'}`);
  const wrong = Object.keys(beside).filter((outcome) => outcome !== '200').length;
  return (
    ratios.every(([, ratio, most]) => ratio < most) &&
    areLoneHeld &&
    quiet.lost + partner.lost + uploads.lost + all.lost + wrong === 0 &&
    Object.values(grownMb).every((mb) => mb < GROWTH_MB_MAX) &&
    faults === undefined
  );
}

/**
 * Returns the attacks that are measured together.
 * @param floodingSpin spin request of a partner over its rate limit
 */
function ordersOf(port: number, floodingSpin: string): (readonly [name: string, order: AttackOrder])[] {
  const flooding = (request: string): AttackOrder => ({
    port,
    connections: FLOOD_CONNECTIONS,
    flood: { request, perSecond: FLOOD_PER_SECOND },
  });
  return [
    ['flood of a partner over its limit', flooding(floodingSpin)],
    ['uploads of strangers in chunks of one byte', { port, connections: UPLOADS, upload: CHUNKED_UPLOAD }],
    ['flood of a stranger', flooding(plainRequest('GET', '/api/partner/v1/games', 'ks_wrong'))],
    ['slow connections', { port, connections: SLOW, slowText: plainRequest('GET', '/healthz', 'ks_slow') }],
    ['idle connections', { port, connections: IDLE }],
  ];
}

await runToEnd(async (cleanup) => {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  // The service has only one cell, so that attacker and victim meet in every queue.
  const service = await spawnService(
    environment(stores, {
      LOG_LEVEL: 'fatal',
      CELLS: '1',
      ...constants({ webhookRetryDelaysMs: [200], webhookHostAttemptsMax: 100_000 }),
    }),
  );
  cleanup.add(() => service.stop());
  const port = portOf(service.base!);
  const { client, pid } = service;
  const sheet = parSheet('classic-3-reel');
  const victim = await client.newPartner();
  const flooder = await client.newPartner({ spinRateLimit: 300 });
  const games = [await client.newGame(victim.key, sheet), await client.newGame(flooder.key, sheet)];
  const spin = (key: string, gameId: number, playerId: string): Buffer =>
    spinRequest(key, JSON.stringify({ gameId, playerId, wagerUsd: 0.25 }));
  const spins = (forSeconds: number): Promise<Phase> =>
    spinFor(pid, port, () => spin(victim.key, games[0]!, `p${Math.floor(Math.random() * 500)}`), forSeconds);

  const orders = ordersOf(port, spin(flooder.key, games[1]!, 'flood').toString());
  // All attacker processes exist from the start, so that the cost of idle processes is part of the victim's
  // quiet value.
  const attacks = await loneAttacks(client, sheet);
  const attackers = [...orders, ...attacks].map(() => fork(ATTACKER));
  cleanup.add(() => {
    for (const attacker of attackers) attacker.kill();
  });
  const attack = (from: number, to: number): void => {
    for (let i = from; i < to; i++) attackers[i]!.send(orders[i]![1]);
  };

  await spins(WARM_UP_SECONDS);
  const lone: LoneOutcome[] = [];
  for (const [i, each] of attacks.entries())
    lone.push(await playAlone(each, attackers[orders.length + i]!, pid, () => spins(seconds / 4)));
  const quiet = await spins(seconds / 2);
  attack(0, 1);
  await pause(1000);
  const partner = await spins(seconds / 2);
  const beforeUploadsMb = residentMb(pid);
  let mostMb = 0;
  const sampling = setInterval(() => {
    mostMb = Math.max(mostMb, residentMb(pid));
  }, 100);
  attack(1, 2);
  const uploads = await spins(seconds / 2);
  clearInterval(sampling);
  attack(2, orders.length);
  // The pause lets all attackers connect and lets closed connections reopen.
  await spins(WARM_UP_SECONDS * 3);
  const beforeMb = residentMb(pid);
  const all = await spins(seconds);
  const afterMb = residentMb(pid);
  const reports = await Promise.all(attackers.slice(0, orders.length).map(endAttack));
  const beside = await playBesideExtremeSheets(client, seconds / 3);
  await service.stop();
  const faults = await audit(stores);

  for (const [i, [name]] of orders.entries()) showAttack(name, reports[i]!);
  const grownMb = { 'under uploads': mostMb - beforeUploadsMb, 'under everything': afterMb - beforeMb };
  return judge({ quiet, partner, uploads, all }, lone, beside, grownMb, faults);
});
