/**
 * A successful request of every operation of the OpenAPI documents. A body is the example of the document,
 * with the ids of the test's own partner, games and players.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import { BASES } from '../../src/api/contract/apis.js';
import { type Client, OPERATOR_KEY, type TestPartner } from './client.js';
import { setUp } from './communal.js';
import { deal, dealUntil, isPlaying, newTable } from './rounds.js';
import { parSheet } from './sheets.js';

type Json = Record<string, unknown>;

/** What an operation needs beyond the values that all operations share. */
interface Given {
  /** Values of the path's parameters. */
  readonly path?: Json;
  readonly query?: string;
  /** Members that replace those of the example. */
  readonly body?: Json;
  readonly key?: string;
  readonly headers?: Record<string, string>;
}

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly headers: Record<string, string> | undefined;
  readonly body: Json | undefined;
}

export interface Operation {
  readonly name: string;
  readonly scope: keyof typeof BASES;
  readonly method: string;
  /** The path with its parameters, such as `/spins/{spinId}`. */
  readonly template: string;
  /** Names of the parameters of the query. */
  readonly query: readonly string[];
  /** Makes what one more request needs. */
  prepare(): Promise<Request>;
}

const RAFFLE = {
  ticketPriceUsd: 1,
  poolSize: 8,
  prizes: [{ prizeName: 'P', prizeTier: 1, valueUsd: 1, count: 1 }],
};

/**
 * @param client the service with all roles, which makes what a request needs
 * @param sql the books, for what no operation makes within a test
 */
export async function everyOperation(
  client: Client,
  sql: postgres.Sql,
  partner: TestPartner,
): Promise<Operation[]> {
  const { partnerId, key } = partner;
  let made = 0;
  const unique = (prefix: string): string => `${prefix}-${++made}`;
  const ofOperator = async <T = Json>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await client.operator<T>(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  };
  const ofPartner = async <T = Json>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await client.partner<T>(method, path, key, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  };
  const gameId = await client.newGame(key, parSheet('classic-3-reel'));
  const sheet = () => client.api.addSheet(key, parSheet('classic-3-reel'));
  const parSheetId = await sheet();
  await setUp(client, gameId);
  const tableId = await newTable(client, partnerId);
  const raffle = () => client.api.newRaffle(partnerId, unique('raffle'), RAFFLE);
  const raffleId = await raffle();
  const spinBody = () => ({ gameId, playerId: 'alice', wagerUsd: 0.25, requestId: unique('spin') });
  const bound = spinBody();
  const { spinId } = await ofPartner('POST', '/spin', bound);
  for (let spins = 0; spins < 3; spins++) await ofPartner('POST', '/spin', spinBody());
  const openRound = () => dealUntil(client, key, tableId, unique('player'), isPlaying);
  const dealt = await deal(client, key, tableId, 'alice');
  const { roundId } = dealt.body;
  const webhook = () =>
    ofPartner<{ id: string }>('POST', '/webhooks', {
      url: 'http://localhost:1/',
      events: ['spin.large_win'],
    });
  const { id: webhookId } = await webhook();
  await ofPartner('POST', `/webhooks/${webhookId}/test`, { event: 'spin.large_win' });
  const { deliveries } = await ofPartner<{ deliveries: { id: string }[] }>(
    'GET',
    `/webhooks/${webhookId}/deliveries`,
  );
  const delivery = deliveries[0]!.id;
  const operator = () =>
    ofOperator<{ name: string }>('POST', '/operators', { name: unique('jane'), role: 'operator' });
  const issuedKey = () => ofOperator<{ keyId: number }>('POST', `/partners/${partnerId}/keys`, {});
  /** Opens a review. Each game has at most one open review of a span, so the one before is closed. */
  const review = async (): Promise<string> => {
    await sql`
      UPDATE rtp_reviews SET closed_at = now(), closed_by = 'operator', finding = 'CHANCE'
      WHERE closed_at IS NULL AND game_id = ${gameId}`;
    const [row] = await sql`
      INSERT INTO rtp_reviews (game_id, span, opened_at, opened_day) VALUES (${gameId}, 'LIFE', now(), current_date - 1)
      RETURNING review_id`;
    return String(row!.review_id);
  };
  const today = new Date().toISOString().slice(0, 10);
  const settleable = async (): Promise<TestPartner> => {
    const made = await client.newPartner();
    await client.newGame(made.key, parSheet('classic-3-reel'));
    return made;
  };
  const settled = async (): Promise<Given> => {
    const made = await settleable();
    await ofOperator('POST', `/partners/${made.partnerId}/settlements/${today}`);
    return { key: made.key };
  };
  await ofOperator('POST', `/partners/${partnerId}/settlements/${today}`);
  const [block] = (await ofPartner<{ blocks: { number: number }[] }>('GET', `/games/${gameId}/blocks`))
    .blocks;
  const { added } = await ofOperator<{ added: number[] }>('POST', '/cells', { count: 1 });
  const signIn = async (): Promise<Record<string, string>> => {
    const answer = await client.request<{ csrfToken: string }>('POST', `${BASES.operator}/session`, {
      key: OPERATOR_KEY,
    });
    return {
      Cookie: answer.headers.get('Set-Cookie')!.split(';')[0]!,
      'X-CSRF-Token': answer.body.csrfToken,
    };
  };

  /** The id in a path, by the first part of the path. */
  const ids: Record<string, unknown> = {
    partners: partnerId,
    games: gameId,
    'par-sheets': parSheetId,
    webhooks: webhookId,
    deliveries: delivery,
    raffles: raffleId,
  };
  const shared: Json = {
    playerId: 'alice',
    date: today,
    number: block!.number,
    spinId,
    roundId,
    deliveryId: delivery,
    cell: added[0],
    version: 'v1',
  };
  const particular: Record<string, () => Given | Promise<Given>> = {
    acknowledgeSettlement: settled,
    actInRound: async () => ({ body: { roundId: (await openRound()).roundId } }),
    adjustBalance: () => ({ body: { requestId: unique('adjust') } }),
    chooseNextOutcome: () => ({ body: { gameId, combinationIndex: 1 } }),
    closeRound: async () => ({ path: { roundId: (await openRound()).roundId } }),
    closeRtpReview: async () => ({ path: { id: await review() } }),
    createBlackjackGame: () => ({ body: { configName: unique('TABLE').replace('-', '_') } }),
    createOperator: () => ({ body: { name: unique('jane') } }),
    createPartner: () => ({ body: { slug: unique('acme') } }),
    createRaffle: () => ({ body: { configName: unique('RAFFLE').replace('-', '_') } }),
    dealRound: () => ({ body: { gameId: tableId, playerId: unique('player'), requestId: unique('deal') } }),
    deleteWebhook: async () => ({ path: { id: (await webhook()).id } }),
    disputeSettlement: settled,
    findRequest: () => ({ query: `?requestId=${bound.requestId}` }),
    fundCommunal: () => ({ body: { requestId: unique('funding') } }),
    getGamesReport: () => ({ query: '?interval=DTD' }),
    getPartnerGamesReport: () => ({ query: '?interval=DTD' }),
    getPool: () => ({ path: { id: raffleId } }),
    addRtpNote: async () => ({ path: { id: await review() } }),
    getRtpReview: async () => ({ path: { id: await review() } }),
    getSession: async () => ({ headers: await signIn() }),
    makeSettlement: async () => ({ path: { id: (await settleable()).partnerId } }),
    movePartner: async () => {
      const moved = await client.newPartner({ cell: 0 });
      return { path: { id: moved.partnerId }, body: { cell: added[0] } };
    },
    registerGame: () => ({ body: { parSheetId, configName: unique('GAME').replace('-', '_') } }),
    registerWebhook: () => ({ body: { url: 'http://localhost:1/' } }),
    revokeKey: async () => ({ path: { keyId: (await issuedKey()).keyId } }),
    revokeOperator: async () => ({ path: { name: (await operator()).name } }),
    rotateKey: async () => ({ path: { keyId: (await issuedKey()).keyId } }),
    rotateOperatorKey: async () => ({ path: { name: (await operator()).name } }),
    search: () => ({ query: '?q=alice' }),
    setDealing: () => ({ body: { state: 'ON' } }),
    setDraining: () => ({ body: { isDraining: false } }),
    signOut: async () => ({ headers: await signIn() }),
    spin: () => ({ body: spinBody() }),
    updateGame: () => ({ body: { status: 'ACTIVE' } }),
    updateKey: async () => ({ path: { keyId: (await issuedKey()).keyId } }),
    updateParSheet: async () => ({ path: { id: await sheet() } }),
    updatePlayer: () => ({ body: { status: 'ACTIVE' } }),
    voidRaffle: async () => ({ path: { id: await raffle() } }),
    voidRound: async () => ({ path: { roundId: (await openRound()).roundId } }),
  };

  return operations().map(({ example, ...operation }) => ({
    ...operation,
    async prepare() {
      const {
        path = {},
        query = '',
        key: given,
        body,
        headers,
      } = (await particular[operation.name]?.()) ?? {};
      const { scope, method, template } = operation;
      const values: Json = { ...shared, id: ids[template.split('/')[1]!], ...path };
      const value = (_: string, parameter: string) => encodeURIComponent(String(values[parameter]));
      return {
        method,
        path: BASES[scope] + template.replaceAll(/\{(\w+)\}/g, value) + query,
        key: given ?? (headers === undefined ? (scope === 'operator' ? OPERATOR_KEY : key) : undefined),
        headers,
        body: example === undefined ? undefined : { ...example, ...body },
      };
    },
  }));
}

/** Lists the operations of the OpenAPI documents, each with the example of its body. */
function operations() {
  return (Object.keys(BASES) as (keyof typeof BASES)[]).flatMap((scope) => {
    const { paths } = JSON.parse(
      readFileSync(join(import.meta.dirname, `../../openapi/${scope}.v1.json`), 'utf8'),
    );
    return Object.entries<Record<string, Json>>(paths).flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, { operationId, parameters, requestBody }]) => {
        const content = (requestBody as { content?: Record<string, Json> } | undefined)?.content?.[
          'application/json'
        ];
        const examples = Object.values((content?.examples ?? {}) as Record<string, { value: Json }>);
        const example = (content?.example as Json | undefined) ?? examples[0]?.value;
        return {
          name: operationId as unknown as string,
          scope,
          method: method.toUpperCase(),
          template,
          query: (parameters as unknown as Json[])
            .filter(({ in: place }) => place === 'query')
            .map(({ name }) => String(name)),
          example,
        };
      }),
    );
  });
}
