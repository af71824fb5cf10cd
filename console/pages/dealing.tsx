/**
 * Page of the dealing switches for all games, for partners and for games. Each switch that is off is listed
 * with the button that turns it on.
 */
import { RESUME_PARTNER, STOP_PARTNER } from '../../src/api/client/views/partners.js';
import { RESUME_DEALING, STOP_DEALING } from '../../src/api/client/views/service.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { useDealing } from '../dealingState.js';
import { ChangeForm } from '../form.js';
import { NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import { GAME_COLUMN, PartnerLink, usePartnerColumn } from '../names.js';
import { linkTo } from '../router.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { DangerZone, Facts, Load, Panel, Status } from '../ui.js';

type State = Schemas['DealingResponse']['state'];
type Partner = Schemas['PartnerResponse'];

/** Number of suspended games that are loaded. More games are rarely suspended at the same time. */
const GAMES_READ = 100;

export function Dealing() {
  const loaded = useDealing();
  return (
    <>
      <Load loaded={loaded}>
        {({ state, reason, actor, changedAt }) => (
          <Facts
            of={[
              ['Dealing for all partners', <Status key="state" of={state} />],
              ['Since (UTC)', time(changedAt)],
              ['By', actor ?? NONE],
              ['Reason', reason ?? NONE],
            ]}
          />
        )}
      </Load>
      <StoppedPartners />
      <SuspendedGames />
      <Load loaded={loaded}>{({ state }) => <ForAll state={state} onChanged={loaded.reload} />}</Load>
    </>
  );
}

function ForAll({ state, onChanged }: { readonly state: State; readonly onChanged: () => void }) {
  if (!useMayChange()) return null;
  const name = 'all partners';
  const of = { name, path: {}, onDone: onChanged };
  return (
    <DangerZone>
      {state === 'ON' ? (
        <ChangeForm change={STOP_DEALING} typed={name} {...of} />
      ) : (
        <ChangeForm change={RESUME_DEALING} {...of} />
      )}
    </DangerZone>
  );
}

export const PartnerSwitch = ({
  partner: { partnerId: id, name, dealing },
  onChanged,
}: {
  readonly partner: Partner;
  readonly onChanged: () => void;
}) => (
  <ChangeForm
    change={dealing === 'ON' ? STOP_PARTNER : RESUME_PARTNER}
    path={{ id }}
    {...{ name, isInline: true, onDone: onChanged }}
  />
);

function StoppedPartners() {
  // The partners are loaded here, because the list of partner names is refreshed only once a minute.
  const loaded = useLoad(() => bodyOf(api.GET('/partners', {})), []);
  const mayChange = useMayChange();
  return (
    <Panel title="Partners with dealing off">
      <Load loaded={loaded}>
        {({ partners }) => (
          <Table
            caption="Partners with dealing off"
            rows={partners.filter(({ dealing }) => dealing === 'OFF')}
            keyOf={({ partnerId }) => partnerId}
            empty="None. To stop dealing for a partner, use the end of its page."
            columns={[
              { heading: 'Partner', cell: ({ partnerId }) => <PartnerLink id={partnerId} /> },
              { heading: 'Dealing', cell: ({ dealing }) => <Status of={dealing} /> },
            ]}
            actions={
              mayChange && ((partner) => <PartnerSwitch partner={partner} onChanged={loaded.reload} />)
            }
          />
        )}
      </Load>
    </Panel>
  );
}

function SuspendedGames() {
  const partnerColumn = usePartnerColumn();
  const loaded = useLoad(() => bodyOf(api.GET('/games', { params: { query: { limit: GAMES_READ } } })), []);
  return (
    <Panel title="Suspended games">
      <Load loaded={loaded}>
        {({ games, total }) => (
          <>
            <Table
              caption="Suspended games"
              rows={games.filter(({ status }) => status === 'SUSPENDED')}
              keyOf={({ gameConfigId }) => gameConfigId}
              empty="None. To suspend a game, use the end of its page."
              columns={[
                GAME_COLUMN,
                partnerColumn,
                {
                  heading: 'Why',
                  cell: ({ gameConfigId }) => (
                    <a href={linkTo(['audit'], { subject: `game:${gameConfigId}` })}>Audit log</a>
                  ),
                },
                { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              ]}
            />
            {total > GAMES_READ ? (
              <p class="note">
                Of the newest {GAMES_READ} games of {total}.
              </p>
            ) : null}
          </>
        )}
      </Load>
    </Panel>
  );
}
