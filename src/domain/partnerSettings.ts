/**
 * The settings of a partner. The columns and statements of partners.store.ts, the values of a new partner,
 * the options of `spindle partner` and the console's form are derived from this list. It is plain data,
 * because the console imports it. The audit log keeps its order, so a new setting comes last.
 */

/**
 * `type` is that of the SQL column. `initial` is the value for a new partner; only a setting that begins with
 * null can become null. `help` is for the command, `label` for the console.
 */
const setting =
  <T extends 'int' | 'bigint' | 'text'>(type: T) =>
  <V extends number | string | null>(initial: V, help: string, label?: string) => ({
    type,
    initial,
    help,
    label,
  });
const int = setting('int')<number>;
/** In micro-USD; the API shows USD. */
const amount = setting('bigint');
const text = setting('text');

const PARTNER_SETTINGS = {
  spinRateLimit: int(300, 'maximum number of spins a minute', 'Spins a minute'),
  apiRateLimit: int(600, 'maximum number of other requests a minute', 'Other requests a minute'),
  openingBalanceMicros: amount<number>(0, 'balance of a new player', 'Opening balance of a player in USD'),
  balanceMode: text<'track' | 'enforce'>(
    'track',
    'track: players may spin below a balance of 0; enforce: a wager above the balance is refused',
  ),
  fundingMicros: amount<number | null>(
    null,
    'amount that the operator covers, or none for no limit',
    'Funding in USD (empty: unlimited)',
  ),
  largeWinThresholdMicros: amount<number>(
    100_000_000,
    'payout above which a win is a large win',
    'Large win above, USD',
  ),
  minReadyBlocks: int(2, 'number of blocks kept ready for each game', 'Minimum number of ready blocks'),
  maxGames: int(1000, 'maximum number of games', 'Maximum number of games'),
  maxParSheets: int(1000, 'maximum number of active PAR sheets', 'Maximum number of active PAR sheets'),
  maxWebhooks: int(50, 'maximum number of webhooks', 'Maximum number of webhooks'),
  contactEmail: text<string | null>(null, 'contact address for e-mails, or none'),
};

type Settings = typeof PARTNER_SETTINGS;
type Name = keyof Settings;
export type PartnerSettings = { [N in Name]: Settings[N]['initial'] };
export type AmountSetting = { [N in Name]: Settings[N]['type'] extends 'bigint' ? N : never }[Name];

/** Name of a setting in the API, where amounts are in USD. */
type ShownName<N> = N extends `${infer Amount}Micros` ? `${Amount}Usd` : N;
export type ShownSetting = ShownName<Name>;

export const SETTING_LIST = Object.entries(PARTNER_SETTINGS).map(([name, entry]) => ({
  name: name as Name,
  shown: name.replace(/Micros$/, 'Usd') as ShownSetting,
  ...entry,
}));
