/** Renders the code samples of an operation for the API reference: curl, the TypeScript client and Python. */
import { ORIGIN } from './pages.js';

export interface Sampled {
  readonly operationId: string;
  readonly method: string;
  /** Path below the base path, with its placeholders. */
  readonly path: string;
  readonly base: string;
  /** Path parameters, each with an example value. */
  readonly parameters: readonly { readonly name: string; readonly value: string | number }[];
  readonly body: unknown;
}

export interface Sample {
  readonly label: string;
  /** Name of the language for the highlighter. */
  readonly language: string;
  readonly code: string;
}

/**
 * Methods of the client by operation id. `$1` is the first parameter, `$B` the body. Operations without a
 * method are called by their path.
 */
const METHODS: Readonly<Record<string, string>> = {
  spin: 'spin($B)',
  getSpin: 'getSpin($1)',
  listSpins: '*spins()',
  getPlayer: 'getPlayer($1)',
  listPlayerSpins: '*playerSpins($1)',
  recallGames: 'recall($1)',
  listEvents: '*events()',
  listGames: 'listGames()',
  registerGame: 'registerGame($B)',
  listParSheets: 'listParSheets()',
  uploadParSheet: 'uploadParSheet($B)',
  getPool: 'getPool($1)',
  getGameRtp: 'rtp($1)',
  getVersion: 'version()',
  getCommunal: 'communal.rules($1)',
  getCommunalProgress: 'communal.progress($1)',
  listCommunalEvents: '*communal.events($1)',
  listCommunityBonuses: '*communal.bonuses($1)',
  chooseNextOutcome: 'chooseNextOutcome($B)',
  getSpinProof: 'proofs.spin($1)',
  listBlocks: '*proofs.blocks($1)',
  getBlock: 'proofs.block($1, $2)',
  listSettlements: '*settlements()',
  getSettlement: 'getSettlement($1)',
  listWebhooks: 'webhooks.list()',
  registerWebhook: 'webhooks.register($B)',
  updateWebhook: 'webhooks.update($1, $B)',
  deleteWebhook: 'webhooks.delete($1)',
  rotateWebhookSecret: 'webhooks.rotateSecret($1)',
  resendOwnDelivery: 'webhooks.resend($1, $2)',
  listDeliveries: '*webhooks.deliveries($1)',
  dealRound: 'blackjack.deal($B)',
  getRound: 'blackjack.get($1)',
  listRounds: '*blackjack.rounds()',
  getRoundProof: 'blackjack.proof($1)',
};
const PLAY = '/api/play/blackjack';
/** Operations that move money once, however often they are sent. */
const ONCE = new Set(['spin', 'dealRound', 'actInRound']);

const json = (value: unknown, indent?: number): string => JSON.stringify(value, null, indent);

/** Formats JSON as a TypeScript object literal. */
const objectText = (value: unknown): string =>
  json(value, 2)
    .replaceAll(/^(\s*)"(\w+)":/gm, '$1$2:')
    .replaceAll(/"([^"'\\\n]*)"/g, "'$1'");

const pythonText = (value: unknown): string =>
  json(value, 4).replaceAll(
    /(?<=[\s[:])(true|false|null)(?=[,\n\]]|$)/g,
    (word) => ({ true: 'True', false: 'False', null: 'None' })[word]!,
  );

function typeScript({ operationId, method, path, base, parameters, body }: Sampled): string {
  const values = parameters.map(({ value }) => (typeof value === 'number' ? String(value) : `'${value}'`));
  const known = METHODS[operationId];
  if (known !== undefined) {
    const call = known
      .replace('*', '')
      .replaceAll(/\$(\d|B)/g, (_, which) => (which === 'B' ? objectText(body) : values[Number(which) - 1]!));
    return known.startsWith('*')
      ? `for await (const each of spindle.${call}) console.log(each);`
      : `const answer = await spindle.${call};`;
  }
  if (operationId === 'actInRound')
    return `const answer = await spindle.blackjack.act(round, 'stand');   // round: as the newest answer has it`;
  const members = [
    ...(parameters.length === 0
      ? []
      : [
          `params: { path: { ${parameters.map(({ name }, place) => `${name}: ${values[place]}`).join(', ')} } }`,
        ]),
    ...(body === undefined ? [] : [`body: ${objectText(body)}`]),
  ];
  const how = base === PLAY ? 'blackjack.api' : method === 'GET' ? 'read' : 'write';
  const options = members.length === 0 ? '' : `, { ${members.join(', ')} }`;
  return how === 'blackjack.api'
    ? `const { data } = await spindle.blackjack.api.${method}('${path}'${options});`
    : `const answer = await spindle.${how}((api) => api.${method}('${path}'${options}));`;
}

/**
 * Returns the code samples of an operation.
 *
 * @param withClients true if the TypeScript client supports the API; samples of the operator API use only
 * curl and Python
 */
export function samplesOf(sampled: Sampled, withClients: boolean): Sample[] {
  const { operationId, method, path, base, parameters, body } = sampled;
  const full = parameters.reduce(
    (text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  );
  const verb = method === 'GET' || (method === 'POST' && body !== undefined) ? '' : ` -X ${method}`;
  const sent =
    body === undefined
      ? ''
      : ` \\\n  -H 'Content-Type: application/json' -d '${json(body, 2).replaceAll("'", "'\\''")}'`;
  const curl = `curl -s${verb} ${ORIGIN}${base}${full} -H "X-API-Key: $KEY"${sent}`;
  const more = [
    ...(body === undefined ? [] : [pythonText(body)]),
    ...(base === '/api/partner/v1' ? [] : [`base=${base === PLAY ? 'PLAY' : `URL + "${base}"`}`]),
  ];
  // The quick start defines both: once() repeats a bet until its result is known.
  const called = ONCE.has(operationId) ? `once("${full}"` : `call("${method}", "${full}"`;
  const python = `answer = ${called}${more.map((each) => `, ${each}`).join('')})`;
  return [
    { label: 'curl', language: 'sh', code: curl },
    ...(withClients ? [{ label: 'TypeScript', language: 'ts', code: typeScript(sampled) }] : []),
    { label: 'Python', language: 'python', code: python },
  ];
}
