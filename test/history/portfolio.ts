/** Operators, partners and games of a demonstration. */
import { bodyOf, type OperatorSchemas } from '../../src/api/client/apiClients.js';
import { Api } from '../support/api.js';
import { Client } from '../support/client.js';
import { fiveReelWild, parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

/**
 * Rate limits in requests a minute: unlimited while hours of traffic are produced in a second, and the usual
 * limits afterwards.
 */
const UNBOUND = { spinRateLimit: 1_000_000_000, apiRateLimit: 1_000_000_000 };
const USUAL = { spinRateLimit: 6000, apiRateLimit: 600 };

export interface DemoGame {
  readonly id: number;
  readonly name: string;
  readonly kind: 'slot' | 'raffle' | 'blackjack';
  readonly wagerUsd: number;
  /** Percentage of the partner's plays that go to this game. */
  readonly share: number;
  /**
   * Standard deviation of the return of one play. Players avoid a game with this value while its return is
   * outside the 99 % band. Absent: players never avoid the game.
   */
  readonly sigma?: number;
}

export interface DemoPartner {
  readonly partnerId: number;
  readonly slug: string;
  readonly key: string;
  /** Number of plays on a usual day. */
  readonly playsADay: number;
  readonly players: readonly string[];
  /** The games that are played. */
  games: DemoGame[];
}

export type OperatorName = 'ada.admin' | 'jane.doe' | 'omar.haddad' | 'sam.lee';

export interface Portfolio {
  readonly client: Client;
  /** The operator API with the key of each operator. */
  readonly as: (name: OperatorName) => Api;
  readonly keys: ReadonlyMap<OperatorName, string>;
  readonly acme: DemoPartner;
  readonly northwind: DemoPartner;
  readonly lucky: DemoPartner;
}

const OPERATORS: readonly [OperatorName, OperatorSchemas['OperatorBody']['role']][] = [
  ['ada.admin', 'admin'],
  ['jane.doe', 'operator'],
  ['omar.haddad', 'operator'],
  ['sam.lee', 'auditor'],
];
const NAMES = ['alice', 'bjorn', 'chen', 'dara', 'emeka', 'fatima', 'goran', 'hana', 'ines', 'jonas'];
const playersOf = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => (i < NAMES.length ? NAMES[i]! : `player-${1000 + i}`));

/**
 * A game with a wager of 1 USD that pays twice the wager in 48 of 100 spins. Its return is judged after its
 * first 30 spins.
 */
function coinSheet(title: string): object {
  const symbols = [
    { name: 'HEADS', display: 'H' },
    { name: 'TAILS', display: 'T' },
  ];
  const combination = (tierId: number, face: string, comboProbability: number) => ({
    reelSymbols: [face],
    comboString: face[0],
    payMultiplier: tierId * 2,
    comboProbability,
    tierId,
    displayWeight: 1,
  });
  return {
    gameTitle: title,
    manufacturer: 'Northwind Studio',
    numReels: 1,
    virtualStopsPerReel: [100],
    certifiedRtp: 0.96,
    denominationUsd: 1,
    symbols,
    tiers: [
      { tierId: 0, name: 'No win', probability: 0.52, payMultiplier: 0 },
      { tierId: 1, name: 'Double', probability: 0.48, payMultiplier: 2 },
    ],
    combinations: [combination(0, 'TAILS', 0.52), combination(1, 'HEADS', 0.48)],
  };
}
const COIN_SIGMA = 2 * Math.sqrt(0.48 * 0.52);
const COINS = ['Heads or Tails', 'Double Up', 'Silver Toss', 'Golden Toss', 'Lucky Flip', 'Even Odds'];

const configNameOf = (name: string): string => name.toUpperCase().replaceAll(/[ -]/g, '_');

const raffle = (poolSize: number, ticketPriceUsd: number) => ({
  ticketPriceUsd,
  poolSize,
  prizes: [
    { prizeName: 'City weekend', prizeTier: 6, valueUsd: 0.2 * poolSize * ticketPriceUsd, count: 1 },
    { prizeName: 'Dinner for two', prizeTier: 4, valueUsd: 50, count: Math.round(poolSize / 250) },
    { prizeName: 'Free ticket', prizeTier: 1, valueUsd: ticketPriceUsd, count: Math.round(poolSize / 4) },
  ],
});

const COMMUNAL: OperatorSchemas['CommunalBody'] = {
  enabled: true,
  triggerInterval: 50,
  triggerSplitPct: 40,
  communitySplitPct: 60,
  windowMinutes: 60,
  communitySize: 40,
  resetProgress: false,
  tiers: [
    { tierLevel: 1, tierName: 'Mini', triggerAtSpins: 500, amountUsd: '2.00' },
    { tierLevel: 2, tierName: 'Major', triggerAtSpins: 5000, amountUsd: '25.00' },
    { tierLevel: 3, tierName: 'Grand', triggerAtSpins: 20_000, amountUsd: '250.00' },
  ],
};

/** Creates partners and games on behalf of one of the operators. */
class Maker {
  constructor(private readonly jane: Api) {}

  async partner(
    [slug, name]: readonly [slug: string, name: string],
    [playsADay, players]: readonly [playsADay: number, players: number],
    more: Partial<OperatorSchemas['PartnerBody']>,
  ): Promise<DemoPartner> {
    const settings = { name, openingBalanceUsd: 2000, largeWinThresholdUsd: 20, ...UNBOUND, ...more };
    const body = { slug, environment: 'production' as const, ...settings };
    const { partnerId } = await bodyOf(this.jane.operator.POST('/partners', { body }));
    const ofKey = { params: { path: { id: partnerId } }, body: { name: 'back end' } };
    const { apiKey: key } = await bodyOf(this.jane.operator.POST('/partners/{id}/keys', ofKey));
    return { partnerId, slug, key, playsADay, players: playersOf(players), games: [] };
  }

  async slot(to: DemoPartner, name: string, sheet: object, share: number, sigma?: number): Promise<number> {
    const parSheetId = await this.jane.addSheet(to.key, sheet);
    const body = { parSheetId, displayName: name, configName: configNameOf(name) };
    const { gameConfigId: id } = await bodyOf(this.jane.partner(to.key).POST('/games', { body }));
    const wagerUsd = (sheet as { denominationUsd: number }).denominationUsd;
    const game = { id, name, kind: 'slot' as const, wagerUsd, share };
    to.games.push(sigma === undefined ? game : { ...game, sigma });
    return id;
  }

  async raffle(
    to: DemoPartner,
    name: string,
    poolSize: number,
    priceUsd: number,
    share: number,
  ): Promise<void> {
    const body = { displayName: name, configName: configNameOf(name), ...raffle(poolSize, priceUsd) };
    const params = { path: { id: to.partnerId } };
    const made = await bodyOf(this.jane.operator.POST('/partners/{id}/raffles', { params, body }));
    to.games.push({ id: made.gameConfigId, name, kind: 'raffle', wagerUsd: priceUsd, share });
  }

  async table(to: DemoPartner, name: string, wagerUsd: number, share: number): Promise<void> {
    const body = { displayName: name, configName: configNameOf(name), wagerUsd, rules: {} };
    const params = { path: { id: to.partnerId } };
    const made = await bodyOf(this.jane.operator.POST('/partners/{id}/blackjack-games', { params, body }));
    to.games.push({ id: made.gameConfigId, name, kind: 'blackjack', wagerUsd, share });
  }

  async communal(id: number): Promise<void> {
    const params = { path: { id } };
    await bodyOf(this.jane.operator.PUT('/games/{id}/communal', { params, body: COMMUNAL }));
    const funding = { amountUsd: '1500.00', reason: 'Autumn promotion', requestId: 'autumn-promotion' };
    await bodyOf(this.jane.operator.POST('/games/{id}/communal/funding', { params, body: funding }));
  }

  /** Waits until each game of a partner has outcomes. */
  async playable({ games }: DemoPartner): Promise<void> {
    for (const { id, name } of games) {
      const params = { path: { id } };
      const isPlayable = async (): Promise<boolean> =>
        (await bodyOf(this.jane.operator.GET('/games/{id}', { params }))).queue.outcomesReady > 0;
      await until(isPlayable, `${name} has outcomes`);
    }
  }
}

/**
 * Creates the portfolio with the APIs of the service.
 * @param ownerKey the key that the service was started with
 */
export async function makePortfolio(base: string, ownerKey: string): Promise<Portfolio> {
  const owner = new Api(base, ownerKey);
  const keys = new Map<OperatorName, string>();
  for (const [name, role] of OPERATORS) {
    const { apiKey } = await bodyOf(owner.operator.POST('/operators', { body: { name, role } }));
    keys.set(name, apiKey);
  }
  const as = (name: OperatorName): Api => new Api(base, keys.get(name));
  const make = new Maker(as('jane.doe'));
  const acme = await make.partner(['acme', 'Acme Games'], [2400, 180], { contactEmail: 'ops@acme.example' });
  const northwind = await make.partner(['northwind', 'Northwind Casino'], [1700, 120], {
    fundingUsd: 50_000,
  });
  const lucky = await make.partner(['lucky-star', 'Lucky Star'], [400, 25], { environment: 'sandbox' });

  await make.slot(acme, 'Classic Three', parSheet('classic-3-reel'), 42);
  const wild = await make.slot(acme, 'Five Dragons Road', fiveReelWild(), 50);
  await make.raffle(acme, 'Harvest Raffle', 1000, 2, 4);
  await make.raffle(acme, 'Winter Raffle', 5000, 1, 3);
  await make.table(acme, 'Blackjack Salon', 5, 1);
  await make.slot(northwind, 'Double Strike', parSheet('double-strike'), 30);
  await make.slot(northwind, 'Penny Parade', parSheet('penny-sub-cent'), 21);
  for (const name of COINS) await make.slot(northwind, name, coinSheet(name), 8, COIN_SIGMA);
  await make.table(northwind, 'High Table', 25, 1);
  await make.slot(lucky, 'Classic Three', parSheet('classic-3-reel'), 99);
  await make.table(lucky, 'Practice Table', 1, 1);
  for (const partner of [acme, northwind, lucky]) await make.playable(partner);
  await make.communal(wild);
  return { client: new Client(base), as, keys, acme, northwind, lucky };
}

/** Gives the partners their usual rate limits. */
export async function setUsualLimits({ as, acme, northwind, lucky }: Portfolio): Promise<void> {
  for (const { partnerId } of [acme, northwind, lucky]) {
    const params = { path: { id: partnerId } };
    const body = { ...USUAL, reason: 'The launch is over' };
    await bodyOf(as('jane.doe').operator.PATCH('/partners/{id}', { params, body }));
  }
}
