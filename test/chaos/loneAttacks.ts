/**
 * Defines the attacks of `npm run chaos -- hostile` that are measured one by one, each compared with the
 * victim's spins just before it.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../../src/app/embedded/index.js';
import { type Client, OPERATOR_KEY } from '../support/client.js';
import { plainRequest, portOf, postRequest, spinRequest, Wire } from '../support/load.js';
import { pause } from '../support/wait.js';
import type { AttackOrder, AttackReport } from './attacker.js';
import { type Phase, ratioOf, residentMb } from './victim.js';

const HEADS_PER_SECOND = 300;
const WEBHOOKS = 4;
const WINNERS_SPINS_PER_SECOND = 20;
const SETTLING_MS = 1000;
const RENEWALS_PER_SECOND = 200;
const CONNECTIONS = 16;
/**
 * Percentile of the times of the victim's spins that is compared. The phases are so short that one pause of
 * the machine would change the p99.
 */
const SHARE = 0.9;
const RATIO_MAX = 3;
const GROWTH_MB_MAX = 50;
const NEIGHBOURS_EVERY_MS = 50;
/** A partner may send its 600 reads a minute within a second. */
const READS_AT_ONCE = 300;
const READS_PER_SECOND = 600;
const SESSION = '/api/operator/v1/session';

export interface LoneAttack {
  readonly name: string;
  readonly order: AttackOrder;
  /** HTTP statuses that the answers to the attacker's requests may have. Absent means any status. */
  readonly allowed?: readonly string[];
  /** Requests that others send meanwhile by turns. None of them may fail. */
  readonly neighbours?: readonly string[];
}

export interface LoneOutcome {
  readonly attack: LoneAttack;
  readonly without: Phase;
  readonly during: Phase;
  readonly grownMb: number;
  readonly report: AttackReport;
  readonly neighboursFailed: number;
}

/**
 * Prepares the attacks: a partner with webhooks for each win, an operator's session, and a partner that uses
 * its default limit of reads to the full.
 */
export async function loneAttacks(client: Client, sheet: object): Promise<LoneAttack[]> {
  const port = portOf(client.base);
  const floodOf = (from: string, request: string, perSecond: number): AttackOrder => ({
    port,
    from,
    connections: CONNECTIONS,
    flood: { request, perSecond },
  });
  const winner = await client.newPartner({ largeWinThresholdUsd: 0 });
  const gameId = await client.newGame(winner.key, sheet);
  const streamsOn = await freePort();
  for (let made = 0; made < WEBHOOKS; made++) {
    const body = { url: `http://localhost:${streamsOn}/${made}`, events: ['spin.large_win'] };
    const { status } = await client.partner('POST', '/webhooks', winner.key, body);
    if (status !== 201) throw new Error(`a webhook was answered with ${status}`);
  }
  const spin = spinRequest(winner.key, JSON.stringify({ gameId, playerId: 'winner', wagerUsd: 0.25 }));
  const begun = await client.request<{ csrfToken: string }>('POST', SESSION, { key: OPERATOR_KEY });
  const cookie = (begun.headers.get('set-cookie') ?? '').split(';')[0]!;
  const renewal = plainRequest('POST', SESSION, '')
    .replace(/X-API-Key: [^\r]*\r\n/, '')
    .replace(
      '\r\n\r\n',
      `\r\nCookie: ${cookie}\r\nX-CSRF-Token: ${begun.body.csrfToken}\r\nContent-Length: 0\r\n\r\n`,
    );
  const reader = await client.newPartner({ apiRateLimit: 600 });
  const neighbour = await client.newPartner();
  const from = encodeURIComponent(new Date().toISOString());
  const listed = plainRequest('GET', `/api/partner/v1/spins?limit=100&from=${from}`, reader.key);
  const dealing = JSON.stringify({ state: 'ON', reason: 'measured' });
  return [
    {
      name: 'reads of a partner up to its limit, all at once',
      order: { ...floodOf('127.0.0.5', listed, READS_PER_SECOND), connections: READS_AT_ONCE },
      allowed: ['200', '429'],
      neighbours: [
        plainRequest('GET', '/api/partner/v1/settlements', neighbour.key),
        plainRequest('GET', '/api/operator/v1/partners', OPERATOR_KEY),
        postRequest('/api/operator/v1/dealing', OPERATOR_KEY, dealing).toString().replace(/^POST/, 'PUT'),
        plainRequest('GET', '/statusz', ''),
      ],
    },
    {
      name: 'HEADs of one stranger',
      order: floodOf('127.0.0.2', plainRequest('HEAD', '/healthz', ''), HEADS_PER_SECOND),
      neighbours: [plainRequest('HEAD', '/healthz', '')],
    },
    {
      name: 'receivers that stream without end',
      order: { ...floodOf('127.0.0.3', spin.toString(), WINNERS_SPINS_PER_SECOND), streamsOn },
    },
    {
      name: 'a session that would renew itself',
      order: floodOf('127.0.0.4', renewal, RENEWALS_PER_SECOND),
      allowed: ['401'],
    },
  ];
}

export async function endAttack(attacker: ChildProcess): Promise<AttackReport> {
  const report = once(attacker, 'message');
  attacker.send('end');
  return (await report)[0] as AttackReport;
}

/**
 * Measures spins without the attack and then under it.
 * @param spins plays spins for some seconds
 */
export async function playAlone(
  attack: LoneAttack,
  attacker: ChildProcess,
  pid: number,
  spins: () => Promise<Phase>,
): Promise<LoneOutcome> {
  // The receiver already answers during the first measurement, so that both measurements include the cost of
  // normal deliveries.
  const isReceiver = attack.order.streamsOn !== undefined;
  if (isReceiver) attacker.send(attack.order);
  await pause(isReceiver ? SETTLING_MS : 0);
  const without = await spins();
  const beforeMb = residentMb(pid);
  let mostMb = 0;
  const sampling = setInterval(() => {
    mostMb = Math.max(mostMb, residentMb(pid));
  }, 100);
  attacker.send(isReceiver ? 'stream' : attack.order);
  await pause(SETTLING_MS);
  const neighbour = attack.neighbours && new Neighbour(attack.order.port, attack.neighbours);
  const during = await spins();
  const neighboursFailed = (await neighbour?.end()) ?? 0;
  clearInterval(sampling);
  const report = await endAttack(attacker);
  return { attack, without, during, grownMb: mostMb - beforeMb, report, neighboursFailed };
}

/** Sends requests by turns, each on a connection of its own. */
class Neighbour {
  #isOver = false;
  readonly #failed: Promise<number>;

  constructor(port: number, requests: readonly string[]) {
    this.#failed = this.#ask(port, requests);
  }

  end(): Promise<number> {
    this.#isOver = true;
    return this.#failed;
  }

  async #ask(port: number, requests: readonly string[]): Promise<number> {
    let failed = 0;
    for (let sent = 0; !this.#isOver; sent++) {
      const request = requests[sent % requests.length]!;
      const wire = await Wire.open(port);
      const answer = await wire.ask(request, request.startsWith('HEAD')).catch(() => undefined);
      if (answer?.status !== 200) failed++;
      wire.close();
      await pause(NEIGHBOURS_EVERY_MS);
    }
    return failed;
  }
}

/**
 * Prints the measurements of the attacks.
 * @returns whether all of them are within their limits
 */
export function showLone({
  attack,
  without,
  during,
  grownMb,
  report,
  neighboursFailed,
}: LoneOutcome): boolean {
  const ratio = ratioOf(during, without, SHARE);
  const lost = without.lost + during.lost;
  const strange = Object.keys(report.answers).filter((status) => attack.allowed?.includes(status) === false);
  const isHeld =
    ratio < RATIO_MAX && grownMb < GROWTH_MB_MAX && lost + neighboursFailed + strange.length === 0;
  console.log(
    `${attack.name}: p${SHARE * 100} / without ${ratio.toFixed(2)}, at most ${RATIO_MAX}; memory ${grownMb.toFixed(0)} MB more, at most ${GROWTH_MB_MAX}; ` +
      `${lost} spins without a 200, ${neighboursFailed} requests of neighbours failed; answers ${JSON.stringify(report.answers)}, ` +
      `${report.streams} answers of ${report.streamedMb.toFixed(0)} MB in all; the service takes ${(during.busy * 100).toFixed(0)} % of a core` +
      `${isHeld ? '' : ': MISSED'}`,
  );
  return isHeld;
}
