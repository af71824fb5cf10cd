/**
 * `spindle report`: shows results of games in an interval, the liability of partners to their players, and
 * significant events.
 */
import { Option } from 'commander';
import { LIABILITY, REPORTED_GAMES, SIGNIFICANT_EVENTS, TOTALS } from '../../api/client/views/reports.js';
import { wholeNumber } from '../command.js';
import { listOf } from '../output.js';
import { cursorLine, inCapitals, type OperatorCommands, type Schemas } from './call.js';

export function addReportCommands(commands: OperatorCommands): void {
  const group = commands.group('report', 'reports');
  commands
    .request(
      'games <INTERVAL>',
      'show the wagers and payouts of games in an interval: dtd, mtd, ytd, ltd or range',
      group,
      'GET /reports/games',
      { plain: gamesLines },
    )
    .option('--from <DATE>', 'first UTC day of a range, YYYY-MM-DD')
    .option('--to <DATE>', 'last UTC day of a range')
    .option('--partner <PARTNER>', 'only games of this partner, by id or slug')
    .option('--game <GAME>', 'only this game')
    .option('--cursor <CURSOR>', 'nextCursor of the previous page');
  commands
    .request(
      'liability',
      'show the current liability of partners to their players',
      group,
      'GET /reports/liability',
      { plain: ({ rows }) => listOf(LIABILITY, rows) },
    )
    .option('--date <DATE>', 'show the liability at the end of this UTC day, YYYY-MM-DD');
  commands
    .request('events', 'list significant events, oldest first', group, 'GET /reports/events', {
      plain: ({ events, nextCursor }) =>
        events.length === 0 ? 'No Activity\n' : listOf(SIGNIFICANT_EVENTS, events) + cursorLine(nextCursor),
    })
    .option('--from <TIME>', 'only events from this time on, RFC 3339')
    .option('--to <TIME>', 'only events before this time')
    .option('--type <TYPE>', 'only events of this type, such as cell.halt')
    .addOption(
      inCapitals(
        new Option('--severity <SEVERITY>', 'only events of this severity').choices([
          'info',
          'warning',
          'critical',
        ]),
      ),
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

function gamesLines(report: Schemas['GamesReport']): string {
  const { from, to, completeTo, noActivity, rows, totals, nextCursor } = report;
  const of = `${from ?? 'the first day'} to ${to}, complete to ${completeTo ?? '-'}\n`;
  if (noActivity) return `${of}No Activity\n`;
  return of + listOf(REPORTED_GAMES, rows) + listOf(TOTALS, [totals]) + cursorLine(nextCursor);
}
