/** `spindle review`: lists and shows the reviews of returns to player, adds notes, and closes reviews. */
import { Option } from 'commander';
import { closeReview, type Finding, JUDGEMENTS } from '../../api/client/views/games.js';
import { oneOf } from '../command.js';
import { keyValues, listOf, type TableColumn, table } from '../output.js';
import {
  inCapitals,
  type OperatorCommands,
  type Options,
  pageLine,
  type Schemas,
  withPages,
} from './call.js';

type Review = Schemas['RtpReview'];

const COLUMNS: readonly TableColumn<Review>[] = [
  { heading: 'id', value: (row) => row.reviewId, kind: 'number' },
  { heading: 'game', value: (row) => row.gameConfigId, kind: 'number' },
  { heading: 'window', value: (row) => row.window },
  { heading: 'opened', value: (row) => row.openedAt },
  { heading: 'status', value: (row) => row.status },
  { heading: 'finding', value: (row) => row.finding },
  { heading: 'closed by', value: (row) => row.closedBy },
  { heading: 'notes', value: (row) => row.notes.length, kind: 'number' },
];
const NOTES: readonly TableColumn<Schemas['RtpReviewNote']>[] = [
  { heading: 'at', value: (row) => row.at },
  { heading: 'by', value: (row) => row.by },
  { heading: 'note', value: (row) => row.text },
];

const FINDINGS = { chance: 'CHANCE', 'game-error': 'GAME_ERROR', 'data-error': 'DATA_ERROR' } as const;

export function addReviewCommands(commands: OperatorCommands): void {
  const group = commands.group('review', 'reviews of returns to player');
  const list = commands.request('list', 'list the reviews, newest first', group, 'GET /rtp-reviews', {
    plain: (body) => table(COLUMNS, body.reviews) + pageLine(body, 'reviews'),
  });
  const plain = reviewLines;
  withPages(list, 'reviews')
    .addOption(
      inCapitals(
        new Option('--status <STATUS>', 'only reviews with this status').choices(['open', 'closed']),
      ),
    )
    .option('--game <GAME>', 'only reviews of this game');
  const about = 'show a review with its notes and judgements';
  commands.request('show <REVIEW_ID>', about, group, 'GET /rtp-reviews/{id}', { plain });
  const body = ({ text }: Options) => ({ text });
  commands
    .request('note <REVIEW_ID>', 'add a note to a review', group, 'POST /rtp-reviews/{id}/notes', {
      body,
      plain,
    })
    .requiredOption('--text <TEXT>', 'result of the investigation, or action taken');
  commands
    .change(
      'close <REVIEW_ID>',
      'close a review permanently with its finding',
      group,
      ({ finding }) => closeReview(finding as Finding),
      { body, plain },
    )
    .addOption(
      new Option('--finding <FINDING>', 'conclusion: chance, game-error or data-error')
        .argParser(oneOf(FINDINGS))
        .makeOptionMandatory(),
    )
    .requiredOption('--text <TEXT>', 'last note of the review, which explains the finding')
    .addHelpText(
      'after',
      `
Examples:
  spindle review list --status open
  spindle review note 12 --text 'asked the supplier for the sheet'
  spindle review close 12 --finding chance --text 'one jackpot accounts for it'`,
    );
}

const reviewLines = ({ notes, records, ...review }: Review): string =>
  keyValues(review) + listOf(JUDGEMENTS, records) + table(NOTES, notes);
