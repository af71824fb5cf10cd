/** Plays a scenario against the running service and compares the responses with the model. */
import { randomBytes } from 'node:crypto';
import type postgres from 'postgres';
import type { StoreClock } from '../support/storeClock.js';
import { until } from '../support/wait.js';
import { judgePots, type Operate, setBonus } from './bonus.js';
import { Changing } from './changing.js';
import { amount, at, type Json, numbersAsText, usd } from './decimal.js';
import {
  type Answer,
  type Answered,
  type AuthFailures,
  complain,
  describe,
  type Exchange,
  type FixedRequest,
  type Key,
  outcomeOf,
  type SpinRequest,
  type Told,
} from './exchange.js';
import { afterMicroseconds, type Front } from './front.js';
import { judgeLedger, LAST_PLAYER } from './ledger.js';
import { PartnerModel } from './model.js';
import type {
  Ask,
  By,
  Cut,
  Operation,
  PartnerChoice,
  Scenario,
  SettingsChange,
  SpinChoice,
} from './operations.js';
import {
  type Asked,
  askBadly,
  askChoice,
  askPage,
  askPlayer,
  askRead,
  askSpin,
  askVersion,
  BASE,
  type Credential,
  changedSpin,
  chosenSpin,
  keyText,
  pick,
  spinRequest,
} from './requests.js';
import { Sheet, type SheetName } from './sheet.js';
import { type Game, judgeSettings, type Settings } from './state.js';

const OPERATOR_BASE = '/api/operator/v1';
/**
 * Limits that a scenario can't reach. Each change of settings uses a different limit, so that the responses
 * reveal which settings were in force.
 */
const NO_LIMIT = 1_000_000;
/**
 * Maximum number of a partner's lost spins with an unknown result, because each of them multiplies the number
 * of states.
 */
const UNDECIDED_MAX = 2;
const PAGE = 100;

export interface World {
  readonly fronts: readonly Front[];
  readonly operatorKey: string;
  readonly sql: postgres.Sql<{ bigint: bigint }>;
  readonly clock: StoreClock;
  /** Converts a time of performance.now() to seconds of the store's clock. */
  readonly secondsAt: (time: number) => number;
  readonly cutStore: (() => void) | undefined;
  readonly auth: AuthFailures;
  /** Number of occurrences of each response, such as `spin 409 KS-4111`. */
  readonly seen: Map<string, number>;
}

interface Partner {
  readonly model: PartnerModel;
  /** Spins with a requestId that were sent and can be repeated. */
  readonly asked: SpinRequest[];
}

interface Ready extends Asked {
  readonly partner: Partner;
  readonly front: number;
  readonly key: Credential;
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

const activeKeys = ({ keys }: PartnerModel): Key[] => keys.filter((key) => !key.isRevoked.newest);

const sheets = new Map<SheetName, Sheet>();
function sheetOf(name: SheetName): Sheet {
  let sheet = sheets.get(name);
  if (sheet === undefined) {
    sheet = new Sheet(name);
    sheets.set(name, sheet);
  }
  return sheet;
}

export class Play {
  /** Requests and responses, for the analysis of a failure. */
  readonly trace: string[] = [];
  begun = 0;
  readonly #partners: Partner[] = [];
  #isTroubled = false;
  #changes = 0;

  constructor(private readonly world: World) {}

  /** @throws Violation if the service does what the model does not allow */
  async run({ partners, operations }: Scenario): Promise<void> {
    await this.#whole();
    this.#partners.push(...(await Promise.all(partners.map((choice) => this.#newPartner(choice)))));
    for (const operation of operations) {
      this.begun++;
      await this.#perform(operation);
    }
    for (const partner of this.#partners) await this.#close(partner);
  }

  // Creation of partners ----------------------------------------------------------------------------------

  async #newPartner(choice: PartnerChoice): Promise<Partner> {
    const { environment, opening, balanceMode, funding } = choice;
    const number = ++this.#changes;
    const spinRateLimit = choice.spinLimit ?? NO_LIMIT + number;
    // The upload and the registration of each game count as requests as well.
    const apiRateLimit =
      choice.apiLimit === null ? NO_LIMIT + number : choice.apiLimit + 2 * choice.sheets.length;
    const made = await this.#operator(0, 'POST', '/partners', {
      slug: `m-${randomBytes(8).toString('hex')}`,
      name: 'Model',
      environment,
      spinRateLimit,
      apiRateLimit,
      balanceMode,
      fundingUsd: funding === null ? null : Number(funding),
      ...(opening === undefined ? {} : { openingBalanceUsd: Number(opening) }),
    });
    const openingText = opening ?? (environment === 'sandbox' ? '1000' : '0');
    const settings: Settings = {
      isActive: true,
      spinRateLimit,
      apiRateLimit,
      opening: amount(openingText)!,
      isEnforced: balanceMode === 'enforce',
      funding: funding === null ? null : amount(funding)!,
    };
    judgeSettings(made, 201, settings);
    const { secondsAt, auth } = this.world;
    const partnerId = Number(at(made.json, 'partnerId'));
    const model = new PartnerModel(
      partnerId,
      environment === 'sandbox',
      new Changing(settings),
      secondsAt,
      auth,
    );
    const partner: Partner = { model, asked: [] };
    await this.#issue(partner, 0);
    await this.#makeGames(partner, choice.sheets.map(sheetOf));
    if (choice.bonus !== null) await setBonus(this.#operate, model, choice.bonus);
    return partner;
  }

  async #issue({ model }: Partner, front: number): Promise<void> {
    const issued = await this.#operator(front, 'POST', `/partners/${model.partnerId}/keys`, {});
    if (!model.settings.newest.isActive) {
      if (outcomeOf(issued) !== '403 KS-4210') complain(issued, 'Expected 403 KS-4210');
      return;
    }
    const apiKey = at(issued.json, 'apiKey');
    if (issued.status !== 201 || typeof apiKey !== 'string' || !/^ks_[\w-]{43}$/.test(apiKey))
      complain(issued, 'No key');
    model.keys.push({ keyId: Number(at(issued.json, 'keyId')), apiKey, isRevoked: new Changing(false) });
  }

  async #makeGames(partner: Partner, chosen: readonly Sheet[]): Promise<void> {
    const key = partner.model.keys[0]!;
    const post = async (path: string, bodies: readonly string[]): Promise<Json[]> => {
      const request: FixedRequest = { kind: 'fixed', window: 'API', what: `POST ${path}`, allowed: ['201'] };
      const http = { method: 'POST', path: BASE + path };
      const exchanges = await this.#exchange(
        bodies.map((body) => ({ partner, front: 0, key, request, http: { ...http, body } })),
      );
      return exchanges.map(({ answer }) => numbersAsText(answer!.text));
    };
    const uploads = await post(
      '/par-sheets',
      chosen.map((sheet) => sheet.text),
    );
    const registrations = await post(
      '/games',
      uploads.map((upload, place) => {
        const parSheetId = Number(at(upload, 'parSheetId'));
        return JSON.stringify({ parSheetId, displayName: 'A game', configName: `G_${place}` });
      }),
    );
    for (const [place, sheet] of chosen.entries()) {
      const gameId = Number(at(registrations[place], 'gameConfigId'));
      await until(async () => {
        const game = await this.#operator(0, 'GET', `/games/${gameId}`);
        return Number(at(game.json, 'queue', 'readyBlocks')) > 0;
      }, `game ${gameId} has its first block`);
      partner.model.games.push({ gameId, sheet, isSuspended: new Changing(false), strip: new Map() });
    }
  }

  // Operations --------------------------------------------------------------------------------------------

  async #perform(operation: Operation): Promise<void> {
    switch (operation.op) {
      case 'spin':
      case 'again':
      case 'bad':
      case 'choose':
      case 'read':
        await this.#askAll([operation]);
        return;
      case 'together':
        await this.#askAll(operation.asks);
        return;
      case 'copies': {
        const { by, spin, copies } = operation;
        const ask = { op: 'spin', by, spin: { ...spin, requestId: spin.requestId ?? 0 } } as const;
        // The copies of a request are spread over all front ends.
        await this.#askAll(
          Array.from({ length: copies }, (_, i) => ({ ...ask, by: { ...by, front: by.front + i } })),
        );
        return;
      }
      case 'cut':
        await this.#cut(operation.by, operation.spin, operation.cut);
        return;
      case 'settings':
        await this.#change(
          this.#partner(operation.partner),
          operation.front,
          operation.change,
          operation.wait,
        );
        return;
      case 'issue':
        await this.#issue(this.#partner(operation.partner), this.#front(operation.front));
        return;
      case 'revoke':
        await this.#revoke(this.#partner(operation.partner), operation.front, operation.key, operation.wait);
        return;
      case 'suspend':
      case 'resume': {
        const partner = this.#partner(operation.partner);
        const game = pick(partner.model.games, operation.game)!;
        await this.#suspend(partner, operation.front, game, operation.op === 'suspend', operation.wait);
        return;
      }
      case 'minute': {
        const minute = async () => Math.floor((await this.world.clock.seconds()) / 60);
        const from = await minute();
        await until(async () => (await minute()) > from, 'the minute is over');
        return;
      }
      case 'store-cut':
        await this.#cutStore(operation.asks, operation.afterUs);
        return;
    }
  }

  async #askAll(asks: readonly Ask[]): Promise<void> {
    await this.#exchange(asks.flatMap((ask) => this.#ready(ask) ?? []));
  }

  async #cut(by: By, spin: SpinChoice, cut: Cut): Promise<void> {
    const ready = this.#ready({ op: 'spin', by, spin });
    if (ready === undefined || typeof ready.key === 'string') return;
    const { partner, front, key, request, http } = ready;
    const whole = { ...http, key: key.apiKey };
    if (partner.model.undecided >= UNDECIDED_MAX) await this.#resolve(partner);
    // The result of a lost spin without a requestId can never be found out.
    if (partner.model.undecided >= UNDECIDED_MAX) return;
    const sentAt = performance.now();
    const isPartial = 'bytes' in cut;
    let answer: Answer | undefined;
    if (isPartial) await this.world.fronts[front]!.askInPart(whole, cut.bytes);
    else answer = await this.world.fronts[front]!.askAndCut(whole, cut.afterUs, cut.how);
    const receivedAt = performance.now();
    const isTroubled = this.#isTroubled;
    this.#take([{ request, key, front, sentAt, receivedAt, answer, isPartial, isTroubled, partner }]);
  }

  async #change(partner: Partner, front: number, change: SettingsChange, wait: boolean): Promise<void> {
    const { model } = partner;
    const number = ++this.#changes;
    const limitOf = (limit: number | null | undefined, now: number): number =>
      limit === undefined ? now : (limit ?? NO_LIMIT + number);
    const before = model.settings.newest;
    const { isActive, opening, balanceMode, funding } = change;
    const settings: Settings = {
      isActive: isActive ?? before.isActive,
      spinRateLimit: limitOf(change.spinLimit, before.spinRateLimit),
      // If no small API limit is requested, a different large limit shows which settings were in force.
      apiRateLimit: limitOf(change.apiLimit ?? null, before.apiRateLimit),
      opening: opening === undefined ? before.opening : amount(opening)!,
      isEnforced: balanceMode === undefined ? before.isEnforced : balanceMode === 'enforce',
      funding: funding === undefined ? before.funding : funding === null ? null : amount(funding)!,
    };
    const answer = await this.#operator(this.#front(front), 'PATCH', `/partners/${model.partnerId}`, {
      isActive,
      spinRateLimit: settings.spinRateLimit,
      apiRateLimit: settings.apiRateLimit,
      openingBalanceUsd: opening === undefined ? undefined : Number(opening),
      balanceMode,
      fundingUsd: funding === undefined || funding === null ? funding : Number(funding),
    });
    judgeSettings(answer, 200, settings);
    model.settings.change(settings, performance.now());
    if (wait) await this.#inForce(partner, model.settings, askVersion());
  }

  async #revoke(partner: Partner, front: number, number: number, wait: boolean): Promise<void> {
    const { model } = partner;
    const key = pick(model.keys, number)!;
    const path = `/partners/${model.partnerId}/keys/${key.keyId}`;
    const answer = await this.#operator(this.#front(front), 'DELETE', path);
    if (answer.status !== 204) complain(answer, 'Expected 204');
    if (key.isRevoked.newest) return;
    key.isRevoked.change(true, performance.now());
    if (wait) await this.#inForce(partner, key.isRevoked, askVersion(), key);
  }

  async #suspend(
    partner: Partner,
    front: number,
    game: Game,
    isSuspended: boolean,
    wait: boolean,
  ): Promise<void> {
    const status = isSuspended ? 'SUSPENDED' : 'ACTIVE';
    const answer = await this.#operator(this.#front(front), 'PATCH', `/games/${game.gameId}`, { status });
    if (answer.status !== 200 || at(answer.json, 'status') !== status)
      complain(answer, `Expected 200 with ${status}`);
    if (game.isSuspended.newest === isSuspended) return;
    game.isSuspended.change(isSuspended, performance.now());
    // A spin with a wrong wager shows whether the game is suspended, and has no effect.
    const probe = askSpin(spinRequest(game.gameId, 'probe', '0.000001', undefined));
    if (wait) await this.#inForce(partner, game.isSuspended, probe);
  }

  /**
   * Sends requests to every front end until a response reveals a change. The model checks that this happens
   * within one second.
   */
  async #inForce(
    partner: Partner,
    changing: { possible(front: number, sentAt: number): readonly unknown[] },
    asked: Asked,
    key = activeKeys(partner.model)[0] ?? partner.model.keys[0]!,
  ): Promise<void> {
    for (const front of this.world.fronts.keys()) {
      await until(async () => {
        if (changing.possible(front, performance.now()).length === 1) return true;
        const [exchange] = await this.#exchange([{ ...asked, partner, front, key }]);
        // A used-up rate limit or a refused key would hide all other results.
        return asked.request.kind === 'spin' && [401, 429].includes(exchange!.answer!.status);
      }, `front end ${front} knows of a change`);
    }
  }

  async #cutStore(asks: readonly Ask[], afterUs: number): Promise<void> {
    const { cutStore } = this.world;
    if (cutStore === undefined) throw new Error('There is no cable to cut');
    for (const partner of this.#partners) {
      if (partner.model.undecided > 0) await this.#resolve(partner);
      // Every request that is in progress when the connections are cut may be lost, so only as many requests
      // are sent as the model can follow.
      if (partner.model.undecided > 0) return;
    }
    this.#isTroubled = true;
    const ready = asks.slice(0, UNDECIDED_MAX).flatMap((ask) => this.#ready(ask) ?? []);
    await Promise.all([this.#exchange(ready), afterMicroseconds(afterUs).then(cutStore)]);
    await this.#whole();
    this.#isTroubled = false;
  }

  /** Waits until the front ends are connected to their stores again. */
  async #whole(): Promise<void> {
    if (this.world.cutStore === undefined) return;
    for (const front of this.world.fronts) {
      await until(async () => {
        const answer = await front.ask({ method: 'GET', path: '/statusz', key: undefined });
        return answer.status === 200;
      }, 'the service is ready');
    }
  }

  // Requests ----------------------------------------------------------------------------------------------

  #partner(number: number): Partner {
    return pick(this.#partners, number)!;
  }

  #front(number: number): number {
    return number % this.world.fronts.length;
  }

  /** Returns the request of a choice. Undefined if there is nothing to choose from. */
  #ready({ by, ...ask }: Ask): Ready | undefined {
    const partner = this.#partner(by.partner);
    const { model } = partner;
    const key =
      typeof by.key === 'number'
        ? pick(activeKeys(model), by.key)
        : by.key === 'revoked'
          ? model.keys.find((each) => each.isRevoked.newest)
          : by.key;
    const asked = this.#asked(partner, ask);
    if (key === undefined || asked === undefined) return undefined;
    return { partner, front: this.#front(by.front), key, ...asked };
  }

  #asked(partner: Partner, ask: DistributiveOmit<Ask, 'by'>): Asked | undefined {
    const { model } = partner;
    const foreign = this.#partners.find((other) => other !== partner)?.model;
    switch (ask.op) {
      case 'spin':
        return this.#askSpin(partner, chosenSpin(model, foreign, ask.spin));
      case 'again': {
        const first = pick(partner.asked, ask.which);
        return first === undefined
          ? undefined
          : this.#askSpin(partner, changedSpin(model, first, ask.change));
      }
      case 'bad':
        return askBadly(model, ask.body);
      case 'choose':
        return askChoice(model, foreign, ask.choice);
      case 'read':
        return askRead(model, foreign, ask.read);
    }
  }

  #askSpin(partner: Partner, request: SpinRequest): Asked {
    if (request.requestId !== undefined) partner.asked.push(request);
    return askSpin(request);
  }

  /** Sends requests concurrently and passes the responses to the model. */
  async #exchange(ready: readonly Ready[]): Promise<Exchange[]> {
    const exchanges = await Promise.all(
      ready.map(async ({ partner, front, key, request, http }) => {
        const sentAt = performance.now();
        const answer = await this.world.fronts[front]!.ask({ ...http, key: keyText(key) });
        const receivedAt = performance.now();
        return {
          partner,
          front,
          key,
          request,
          sentAt,
          receivedAt,
          answer,
          isPartial: false,
          isTroubled: this.#isTroubled,
        };
      }),
    );
    for (const { key, answer, ...rest } of exchanges) {
      if (typeof key !== 'string') continue;
      this.#note(rest.partner, { ...rest, answer });
      this.world.auth.take(
        rest,
        answer,
        [key === 'none' ? '401 KS-4001' : '401 KS-4002'],
        this.world.secondsAt,
      );
    }
    const keyed = exchanges.flatMap(({ key, ...rest }) =>
      typeof key === 'string' ? [] : [{ ...rest, key }],
    );
    this.#take(keyed);
    return keyed;
  }

  #take(exchanges: readonly (Exchange & { readonly partner: Partner })[]): void {
    for (const each of exchanges) this.#note(each.partner, each);
    for (const partner of new Set(exchanges.map((each) => each.partner))) {
      partner.model.take(exchanges.filter((each) => each.partner === partner));
    }
  }

  #note(partner: Partner, exchange: Told): void {
    const { request, answer } = exchange;
    this.trace.push(`${partner.model.partnerId}: ${describe(exchange)}`);
    const replayed = answer?.headers.get('idempotent-replayed') === 'true' ? ' replayed' : '';
    const name = `${request.kind} ${answer === undefined ? 'cut' : outcomeOf(answer)}${replayed}`;
    this.world.seen.set(name, (this.world.seen.get(name) ?? 0) + 1);
  }

  readonly #operate: Operate = (method, path, body) => this.#operator(0, method, path, body);

  async #operator(front: number, method: string, path: string, body?: object): Promise<Answered> {
    const { fronts, operatorKey } = this.world;
    const request = { method, path: OPERATOR_BASE + path, key: operatorKey };
    const answer = await fronts[front]!.ask(
      body === undefined ? request : { ...request, body: JSON.stringify(body) },
    );
    const asked = `operator ${method} ${path} ${JSON.stringify(body)}`;
    if (method !== 'GET') this.trace.push(`${asked} → ${answer.status} ${answer.text}`);
    return { ...answer, asked, json: answer.text === '' ? undefined : numbersAsText(answer.text) };
  }

  // End of a scenario --------------------------------------------------------------------------------------

  /** Retries lost spins, which reveals their results. */
  async #resolve(partner: Partner): Promise<void> {
    for (const request of partner.model.unresolved) {
      const [key] = activeKeys(partner.model);
      if (key === undefined) return;
      await this.#exchange([{ partner, front: 0, key, ...this.#askSpin(partner, request) }]);
    }
  }

  /**
   * Reactivates everything, finds out the results of lost spins, and compares players and ledger with the
   * model.
   */
  async #close(partner: Partner): Promise<void> {
    const { model } = partner;
    const open = {
      isActive: true,
      spinLimit: null,
      apiLimit: null,
      balanceMode: 'track',
      funding: null,
    } as const;
    await this.#change(partner, 0, open, false);
    for (const game of model.games) await this.#suspend(partner, 0, game, false, false);
    await this.#issue(partner, 0);
    const key = model.keys.at(-1)!;
    const ask = async (asked: Asked): Promise<number> => {
      const [exchange] = await this.#exchange([{ partner, front: 0, key, ...asked }]);
      return exchange!.answer!.status;
    };
    const lastSpin = ({ gameId, sheet }: Game): Asked =>
      askSpin(spinRequest(gameId, LAST_PLAYER, usd(sheet.wager), undefined));
    for (const game of model.games) {
      await until(async () => (await ask(lastSpin(game))) === 200, `game ${game.gameId} is open again`);
    }
    await this.#resolve(partner);
    await ask(lastSpin(model.games[0]!));
    for (const playerId of model.players) {
      await ask(askPlayer(playerId));
      const spins = Math.max(
        ...model.states.map((state) => state.players.get(playerId)?.entries.length ?? 0),
      );
      for (let page = 1; (page - 1) * PAGE < spins; page++) await ask(askPage(playerId, page, PAGE));
    }
    await judgePots(this.#operate, model);
    await judgeLedger(this.world.sql, model);
  }
}
