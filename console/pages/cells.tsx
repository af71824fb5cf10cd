/** Page of cells, Redis servers and recoveries. Operators can drain cells and add cells here. */
import { CELLS, RECOVERIES } from '../../src/api/client/views/service.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';
import { count, megabytes } from '../format.js';
import { useLoad } from '../load.js';
import { linkTo } from '../router.js';
import { useMayChange } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { Copied, DangerZone, Load, Panel, Status } from '../ui.js';

type Cell = Schemas['OperatorCell'];

const EVERY_MS = 5000;

export function Cells() {
  const mayChange = useMayChange();
  const loaded = useLoad(() => bodyOf(api.GET('/cells', {})), [], EVERY_MS);
  return (
    <Load loaded={loaded}>
      {({ cells, redis, recoveries }) => (
        <>
          <Panel title="Redis">
            <Table
              caption="Redis servers"
              rows={redis}
              keyOf={(server) => redis.indexOf(server)}
              empty="None."
              columns={[
                { heading: 'State', cell: ({ isReady }) => <Status of={isReady ? 'ready' : 'halted'} /> },
                {
                  heading: 'Durability',
                  cell: ({ volatile }) => (volatile.length === 0 ? 'durable' : volatile.join('; ')),
                },
                { heading: 'Memory', cell: ({ memoryBytes }) => megabytes(memoryBytes), isNumber: true },
                {
                  heading: 'Bound',
                  cell: ({ maxMemoryBytes }) =>
                    maxMemoryBytes === 0 ? 'the machine' : megabytes(maxMemoryBytes),
                  isNumber: true,
                },
              ]}
            />
          </Panel>
          <Panel title="Cells">
            <Table
              caption="Cells"
              rows={cells}
              keyOf={({ cell }) => cell}
              empty="None."
              columns={columnsOf(CELLS, {
                Partners: ({ cell, partners }) => (
                  <a href={linkTo(['partners'], { cell: String(cell) })}>{count(partners)}</a>
                ),
                Worker: ({ owner }) =>
                  owner === null ? 'nobody' : <code title={owner}>{owner.slice(0, 8)}</code>,
              })}
              actions={mayChange && ((cell) => <Drain cell={cell} onChanged={loaded.reload} />)}
            />
            <Emptied cells={cells} />
          </Panel>
          <Panel title="Recoveries">
            <Table
              caption="Recoveries, newest first"
              rows={recoveries}
              keyOf={({ cell, epoch }) => `${cell} ${epoch}`}
              empty="No cell has been rebuilt yet."
              columns={columnsOf(RECOVERIES)}
            />
          </Panel>
          {mayChange ? <AddCells onAdded={loaded.reload} /> : null}
        </>
      )}
    </Load>
  );
}

/** Starts or stops the draining of a cell. A draining cell accepts no new partners. */
function Drain({ cell, onChanged }: { readonly cell: Cell; readonly onChanged: () => void }) {
  const { cell: number, isDraining } = cell;
  return (
    <Form
      label={`Partners of cell ${number}`}
      button={isDraining ? 'Take partners' : 'Drain'}
      isInline
      isDangerous={!isDraining}
      confirm={{
        title: isDraining ? `Open cell ${number} to new partners?` : `Drain cell ${number}?`,
        consequence: isDraining
          ? 'New partners can be placed in this cell again, and other partners can be moved to it.'
          : 'No new partner is placed in this cell. Its present partners stay and continue to play until they are moved. You can open the cell again.',
        button: isDraining ? 'Take partners' : 'Drain it',
        isDangerous: !isDraining,
        asksReason: true,
      }}
      act={async ({ reason }) => {
        const params = { path: { cell: number } };
        const body = { isDraining: !isDraining, reason: reason! };
        await bodyOf(api.PATCH('/cells/{cell}', { params, body }));
        onChanged();
        return isDraining ? 'The cell is open to new partners.' : 'The cell is draining.';
      }}
    />
  );
}

/**
 * Explains how the partners of a draining cell are moved: one by one on their pages, or all by a command that
 * waits for each move.
 */
function Emptied({ cells }: { readonly cells: readonly Cell[] }) {
  const waiting = cells.filter(({ isDraining, partners }) => isDraining && partners > 0);
  if (waiting.length === 0) return null;
  return (
    <>
      <p>To move one partner, use the end of its page. To move all partners of a draining cell, run:</p>
      {waiting.map(({ cell }) => (
        <p key={cell}>
          <Copied text={`spindle cells drain ${cell} --move-partners`} />
        </p>
      ))}
    </>
  );
}

const AddCells = ({ onAdded }: { readonly onAdded: () => void }) => (
  <DangerZone>
    <Form
      label="More cells"
      button="Add cells"
      isDangerous
      confirm={({ count: cells }) => [
        {
          title: `Add ${cells} cells?`,
          consequence:
            "A cell can't be removed. New partners are placed in the new cells, because these have the fewest partners. Present partners stay in their cells.",
          button: 'Add them',
          isDangerous: true,
          typed: `${cells} cells`,
        },
      ]}
      act={async ({ count: cells }) => {
        const { added } = await bodyOf(api.POST('/cells', { body: { count: Number(cells) } }));
        onAdded();
        return `Added: ${added.join(', ')}.`;
      }}
    >
      <Field
        label="Cells to add"
        name="count"
        type="number"
        value={1}
        required
        hint="At most 256 cells in total"
      />
    </Form>
  </DangerZone>
);
