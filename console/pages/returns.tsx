/**
 * Page of reviews of returns to player. An assessment outside the band opens a review; operators add notes
 * and close it.
 */
import { closeReview, type Finding, JUDGEMENTS, WINDOW_NAMES } from '../../src/api/client/views/games.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form, questionOf, StatusFilter } from '../form.js';
import { NONE, time } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { NamedGame } from '../names.js';
import { linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { Facts, Load, Pager, Panel, pageOf, Status } from '../ui.js';

type Review = Schemas['RtpReview'];

const STATUSES = ['', 'OPEN', 'CLOSED'];
const FINDINGS = ['CHANCE', 'GAME_ERROR', 'DATA_ERROR'];
const LIMIT = 10;

export function Returns({ place }: { readonly place: Place }) {
  const page = pageOf(place);
  const status = place.query.get('status') ?? '';
  const gameId = Number(place.query.get('gameId') ?? 0);
  const query = {
    page,
    limit: LIMIT,
    ...(status === '' ? {} : { status }),
    ...(gameId > 0 ? { gameId } : {}),
  };
  const loaded = useLoad(() => bodyOf(api.GET('/rtp-reviews', { params: { query } })), [query]);
  return (
    <>
      <p>A fair game lands outside the band about 1 time in 100. A review is routine work, not an alarm.</p>
      <StatusFilter path="returns" options={STATUSES} status={status} />
      {gameId > 0 ? (
        <p>
          Of <NamedGame id={gameId} /> only. <a href={linkTo(['returns'])}>All games</a>
        </p>
      ) : null}
      <Load loaded={loaded}>
        {({ reviews, limit, total }) =>
          reviews.length === 0 ? (
            <p class="empty">
              No review matches these filters. A review opens when the daily judgement of a game's return lies
              outside its band.
            </p>
          ) : (
            <>
              {reviews.map((review) => (
                <ReviewPanel key={review.reviewId} review={review} onChanged={loaded.reload} />
              ))}
              <Pager {...{ place, limit, total }} />
            </>
          )
        }
      </Load>
    </>
  );
}

const ReviewPanel = ({ review, onChanged }: { readonly review: Review; readonly onChanged: () => void }) => (
  <Panel title={`Review ${review.reviewId}`}>
    <Facts
      of={[
        ['Game', <NamedGame key="game" id={review.gameConfigId} />],
        ['Window', WINDOW_NAMES[review.window]],
        ['Opened (UTC)', time(review.openedAt)],
        ['Status', <Status key="status" of={review.status} />],
        ...(review.closedAt === null
          ? []
          : ([
              ['Finding', review.finding ?? NONE],
              ['Closed (UTC)', `${time(review.closedAt)}, ${review.closedBy}`],
            ] as const)),
      ]}
    />
    <Table
      caption={`Judgements of review ${review.reviewId}`}
      rows={[...review.records].reverse()}
      keyOf={({ day, window }) => `${day} ${window}`}
      empty="This review has no judgements."
      columns={columnsOf(JUDGEMENTS)}
    />
    {review.notes.length === 0 ? null : (
      <ul class="notes">
        {review.notes.map(({ at, by, text }) => (
          <li key={at}>
            <strong>
              {time(at)}, {by}
            </strong>{' '}
            {text}
          </li>
        ))}
      </ul>
    )}
    {review.status === 'OPEN' ? <Work review={review} onChanged={onChanged} /> : null}
  </Panel>
);

function Work({ review, onChanged }: { readonly review: Review; readonly onChanged: () => void }) {
  if (!useMayChange()) return null;
  const params = { path: { id: review.reviewId } };
  return (
    <Toolbar>
      <FormDialog title="Add a note">
        <Form
          label={`Note on review ${review.reviewId}`}
          button="Add the note"
          act={async ({ text }) => {
            await bodyOf(api.POST('/rtp-reviews/{id}/notes', { params, body: { text: text! } }));
            onChanged();
            return 'The note is saved.';
          }}
        >
          <Field label="Note" name="text" required />
        </Form>
      </FormDialog>
      <FormDialog title="Close the review">
        <Form
          label={`Close review ${review.reviewId}`}
          button="Close it"
          confirm={({ finding }) => [
            {
              ...questionOf(closeReview(finding as Finding), `review ${review.reviewId}`),
              asksReason: false,
            },
          ]}
          act={async ({ finding, text }) => {
            const body = { finding: finding as Finding, text: text! };
            await bodyOf(api.POST('/rtp-reviews/{id}/close', { params, body }));
            onChanged();
            return 'The review is closed.';
          }}
        >
          <Field label="Finding" name="finding" options={FINDINGS} />
          <Field label="Why" name="text" required />
        </Form>
      </FormDialog>
    </Toolbar>
  );
}
