/**
 * `spindle report`: shows results of games in an interval, the liability of partners to their players, and
 * significant events.
 */
import { Option } from 'commander';
import { bodyOf } from '../../api/client/apiClients.js';
import { wholeNumber } from '../command.js';
import { type TableColumn, table } from '../output.js';
import type { Call, OperatorCommands, Schemas } from './call.js';
import { gameIdOf, partnerIdOf } from './names.js';

const SUMS: readonly TableColumn<Schemas['GamesReportTotals']>[] = [
  { heading: 'spins', value: (row) => row.spins, kind: 'number' },
  { heading: 'wagered USD', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'paid USD', value: (row) => row.paidOutUsd, kind: 'usd' },
  { heading: 'GGR USD', value: (row) => row.ggrUsd, kind: 'usd' },
  { heading: 'shares USD', value: (row) => row.communityBonusUsd, kind: 'usd' },
  { heading: 'RTP', value: (row) => row.actualRtp, kind: 'number' },
  { heading: 'voided', value: (row) => row.voidedOutcomes, kind: 'number' },
  { heading: 'open rounds', value: (row) => row.openRounds, kind: 'number' },
  { heading: 'refunded USD', value: (row) => row.refundedUsd, kind: 'usd' },
];
const GAMES: readonly TableColumn<Schemas['GamesReportRow']>[] = [
  { heading: 'game', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'config', value: (row) => row.configName },
  { heading: 'status', value: (row) => row.status },
  ...SUMS,
  { heading: 'certified', value: (row) => row.certifiedRtp, kind: 'number' },
];
const LIABILITY: readonly TableColumn<Schemas['LiabilityRow']>[] = [
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'slug', value: (row) => row.slug },
  { heading: 'players', value: (row) => row.players, kind: 'number' },
  { heading: 'balances USD', value: (row) => row.balancesUsd, kind: 'usd' },
  { heading: 'positive USD', value: (row) => row.positiveUsd, kind: 'usd' },
  { heading: 'negative USD', value: (row) => row.negativeUsd, kind: 'usd' },
  { heading: 'open rounds', value: (row) => row.openRounds, kind: 'number' },
  { heading: 'budget USD', value: (row) => row.communalBudgetUsd, kind: 'usd' },
];
const EVENTS: readonly TableColumn<Schemas['SignificantEvent']>[] = [
  { heading: 'at', value: (row) => row.at },
  { heading: 'severity', value: (row) => row.severity },
  { heading: 'type', value: (row) => row.type },
  { heading: 'actor', value: (row) => row.actor },
  { heading: 'subject', value: (row) => row.subject },
  { heading: 'partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'game', value: (row) => row.gameId, kind: 'number' },
  { heading: 'payout USD', value: (row) => row.payoutUsd, kind: 'usd' },
  { heading: 'spin', value: (row) => row.spinId },
];

export function addReportCommands(commands: OperatorCommands): void {
  const group = commands.group('report', 'reports');
  commands
    .add(
      'games <INTERVAL>',
      'show the wagers and payouts of games in an interval: dtd, mtd, ytd, ltd or range',
      games,
      group,
    )
    .option('--from <DATE>', 'first UTC day of a range, YYYY-MM-DD')
    .option('--to <DATE>', 'last UTC day of a range')
    .option('--partner <PARTNER>', 'only games of this partner, by id or slug')
    .option('--game <GAME>', 'only this game')
    .option('--cursor <CURSOR>', 'nextCursor of the previous page');
  commands
    .add('liability', 'show the current liability of partners to their players', liability, group)
    .option('--date <DATE>', 'show the liability at the end of this UTC day, YYYY-MM-DD');
  commands
    .add('events', 'list significant events, oldest first', events, group)
    .option('--from <TIME>', 'only events from this time on, RFC 3339')
    .option('--to <TIME>', 'only events before this time')
    .option('--type <TYPE>', 'only events of this type, such as cell.halt')
    .addOption(
      new Option('--severity <SEVERITY>', 'only events of this severity').choices([
        'info',
        'warning',
        'critical',
      ]),
    )
    .option('--partner <PARTNER>', 'only events of this partner, by id or slug')
    .option('--cursor <CURSOR>', 'nextCursor of the previous page')
    .addOption(new Option('--limit <N>', 'events on a page, up to 100').argParser(wholeNumber).default(20))
    .addHelpText(
      'after',
      `
Examples:
  spindle report games mtd --partner acme
  spindle report games range --from 2026-10-01 --to 2026-10-31 --json
  spindle report liability --date 2026-10-31
  spindle report events --severity critical --from 2026-11-01T00:00:00Z`,
    );
}

type Given = Readonly<Record<string, string | undefined>>;

/** Returns the properties that are not undefined. */
const given = <Query extends object>(query: { [Name in keyof Query]: Query[Name] | undefined }) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as Partial<Query>;

const more = (nextCursor: string | null): string =>
  nextCursor === null ? '' : `next page: --cursor ${nextCursor}\n`;

async function games({ client, words, options, print }: Call): Promise<void> {
  const { from, to, partner, game, cursor } = options as Given;
  const partnerId = partner === undefined ? undefined : await partnerIdOf(client, partner, '--partner');
  const gameId = game === undefined ? undefined : await gameIdOf(client, game);
  const query = {
    interval: words[0]!.toUpperCase(),
    ...given({ from, to, cursor, partnerId, gameId }),
  };
  const call = client.GET('/reports/games', { params: { query } });
  print((await bodyOf(call)) as Schemas['GamesReport'], (body) => {
    const of = `${body.from ?? 'the first day'} to ${body.to}, complete to ${body.completeTo ?? '-'}\n`;
    if (body.noActivity) return `${of}No Activity\n`;
    return of + table(GAMES, body.rows) + table(SUMS, [body.totals]) + more(body.nextCursor);
  });
}

async function liability({ client, options, print }: Call): Promise<void> {
  const query = given({ date: (options as Given).date });
  const call = client.GET('/reports/liability', { params: { query } });
  print((await bodyOf(call)) as Schemas['LiabilityReport'], (body) => table(LIABILITY, body.rows));
}

async function events({ client, options, print }: Call): Promise<void> {
  const { from, to, type, severity, partner, cursor } = options as Given;
  const partnerId = partner === undefined ? undefined : await partnerIdOf(client, partner, '--partner');
  const query = {
    limit: options.limit as number,
    ...given({ from, to, type, cursor, partnerId, severity: severity?.toUpperCase() }),
  };
  const call = client.GET('/reports/events', { params: { query } });
  print((await bodyOf(call)) as Schemas['EventsReport'], (body) =>
    body.events.length === 0 ? 'No Activity\n' : table(EVENTS, body.events) + more(body.nextCursor),
  );
}
