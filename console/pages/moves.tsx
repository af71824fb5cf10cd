/** Shows and starts moves of a partner from cell to cell. */
import { useEffect, useRef } from 'preact/hooks';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';
import { time } from '../format.js';
import { useLoad } from '../load.js';
import { linkTo } from '../router.js';
import { Table } from '../table.js';
import { Load, Panel, Status } from '../ui.js';

const EVERY_MS = 3000;

/** Returns the state of a partner's move: failed, finished, copying or switched. */
function stateOf({ failure, finishedAt, switchedAt }: Schemas['PartnerMove']): string {
  if (failure !== null) return 'failed';
  if (finishedAt !== null) return 'finished';
  return switchedAt === null ? 'copying' : 'switched';
}

/** @param onMoved called when the partner is switched to another cell while the page is open */
export function Moves({ id, onMoved }: { readonly id: number; readonly onMoved: () => void }) {
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/partners/{id}/moves', { params })), [id], EVERY_MS);
  const switches = loaded.data?.moves.filter(({ switchedAt }) => switchedAt !== null).length;
  const seen = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (seen.current !== undefined && switches !== undefined && switches !== seen.current) onMoved();
    seen.current = switches;
  }, [switches]);
  return (
    <Panel title="Moves between cells">
      <Load loaded={loaded}>
        {({ moves }) => (
          <Table
            caption="Moves, newest first"
            rows={moves}
            keyOf={({ moveId }) => moveId}
            empty="This partner has not been moved yet."
            columns={[
              { heading: 'Requested (UTC)', cell: ({ requestedAt }) => time(requestedAt) },
              { heading: 'From cell', cell: ({ fromCell }) => fromCell, isNumber: true },
              { heading: 'To cell', cell: ({ toCell }) => toCell, isNumber: true },
              { heading: 'State', cell: (move) => <Status of={stateOf(move)} /> },
              { heading: 'Switched (UTC)', cell: ({ switchedAt }) => time(switchedAt) },
              { heading: 'Finished (UTC)', cell: ({ finishedAt }) => time(finishedAt) },
              { heading: 'Reason of the failure', cell: ({ failure }) => failure ?? '' },
            ]}
          />
        )}
      </Load>
    </Panel>
  );
}

/** Form that moves a partner to another cell without stopping its players. */
export function Move({
  partner: { partnerId: id, name, cell: from },
  onChanged,
}: {
  readonly partner: Schemas['PartnerResponse'];
  readonly onChanged: () => void;
}) {
  const loaded = useLoad(() => bodyOf(api.GET('/cells', {})), [from]);
  return (
    <Load loaded={loaded}>
      {({ cells }) => {
        const others = cells.filter(
          ({ cell, isDraining, halted }) => cell !== from && !isDraining && halted === null,
        );
        if (others.length === 0) {
          return (
            <p class="note">
              No other <a href={linkTo(['cells'])}>cell</a> is open to new partners, so this partner can't be
              moved.
            </p>
          );
        }
        return (
          <Form
            label="Cell"
            button="Move the partner"
            isDangerous
            confirm={({ cell }) => [
              {
                title: `Move ${name} to cell ${cell}?`,
                consequence:
                  'The partner continues to play. During the switch its spins wait, for less than two seconds. A move that fails repeatedly is abandoned, and the partner stays in its cell. The partner can be moved back.',
                button: 'Move it',
                isDangerous: true,
                asksReason: true,
              },
            ]}
            act={async ({ cell, reason }) => {
              const params = { path: { id } };
              const body = { cell: Number(cell), reason: reason! };
              await bodyOf(api.POST('/partners/{id}/move', { params, body }));
              onChanged();
              return 'The move has begun. The table of moves shows its progress.';
            }}
          >
            <Field
              label={`New cell; the present cell is ${from}`}
              name="cell"
              options={[...others].sort((a, b) => a.partners - b.partners).map(({ cell }) => String(cell))}
              hint="Cells that are open to new partners, fewest partners first"
            />
          </Form>
        );
      }}
    </Load>
  );
}
