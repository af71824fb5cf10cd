/** Pages of PAR sheets: the list, and one sheet as uploaded, with its tiers and combinations. */
import { RETIRE_SHEET } from '../../src/api/client/views/games.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { ChangeForm } from '../form.js';
import { count, percent, usd } from '../format.js';
import { useLoad } from '../load.js';
import { PartnerFilter, PartnerLink, usePartnerColumn, usePartnerWanted, useTitle } from '../names.js';
import { decimal, type TierReturn, tierReturns } from '../parSheet.js';
import { linkTo, type Place } from '../router.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { DangerZone, Facts, Load, Panel, pageOf, Status } from '../ui.js';

export function ParSheets({ place }: { readonly place: Place }) {
  const page = pageOf(place);
  const partnerColumn = usePartnerColumn();
  const partnerId = usePartnerWanted(place);
  const query = { page, limit: 50, ...(partnerId === undefined ? {} : { partnerId }) };
  const loaded = useLoad(() => bodyOf(api.GET('/par-sheets', { params: { query } })), [query]);
  return (
    <>
      <PartnerFilter place={place} />
      <Load loaded={loaded}>
        {({ parSheets, limit, total }) => (
          <Table
            caption="PAR sheets, newest first"
            rows={parSheets}
            pages={{ place, limit, total }}
            keyOf={({ parSheetId }) => parSheetId}
            empty="There are no PAR sheets yet. A partner uploads a sheet by the API (POST /par-sheets); it is then listed here."
            columns={[
              { heading: 'Id', cell: ({ parSheetId }) => parSheetId, isNumber: true },
              {
                heading: 'Title',
                cell: ({ parSheetId, gameTitle }) => (
                  <a href={linkTo(['par-sheets', parSheetId])}>{gameTitle}</a>
                ),
              },
              partnerColumn,
              { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              { heading: 'Certified', cell: ({ certifiedRtp }) => percent(certifiedRtp), isNumber: true },
              { heading: 'Reels', cell: ({ numReels }) => numReels, isNumber: true },
              { heading: 'Combinations', cell: (row) => count(row.combinationCount), isNumber: true },
            ]}
          />
        )}
      </Load>
    </>
  );
}

export function ParSheetDetail({ place }: { readonly place: Place }) {
  const id = Number(place.parts[1]);
  const params = { path: { id } };
  const loaded = useLoad(() => bodyOf(api.GET('/par-sheets/{id}', { params })), [id]);
  useTitle(loaded.data?.gameTitle);
  return (
    <Load loaded={loaded}>
      {(detail) => (
        <>
          <Facts
            of={[
              ['Partner', <PartnerLink key="partner" id={detail.partnerId} />],
              ['Status', <Status key="status" of={detail.status} />],
              ['Manufacturer', detail.sheet.manufacturer],
              ['Certified return', percent(detail.certifiedRtp, 4)],
              ['Wager', usd(detail.sheet.denominationUsd)],
              ['Reels', `${detail.numReels}, stops ${detail.sheet.virtualStopsPerReel.join(', ')}`],
            ]}
          />
          <Sheet {...detail} />
          <Retire {...detail} onChanged={loaded.reload} />
        </>
      )}
    </Load>
  );
}

/** Formats what a tier pays: one multiplier, or the range of the multipliers of its combinations. */
const paysText = ({ lowest, highest }: TierReturn): string =>
  lowest === highest ? `${decimal(lowest)} ×` : `${decimal(lowest)} to ${decimal(highest)} ×`;

function Sheet({ sheet }: Schemas['OperatorParSheetDetail']) {
  const returns = tierReturns(sheet);
  // Without combinations a tier pays nothing, and its nominal multiplier has no effect.
  const returnOf = (tierId: number): TierReturn => returns.get(tierId) ?? { part: 0, lowest: 0, highest: 0 };
  return (
    <>
      <Panel title="Tiers">
        <Table
          caption="Tiers"
          rows={sheet.tiers}
          keyOf={({ tierId }) => tierId}
          empty="None."
          columns={[
            { heading: 'Tier', cell: ({ tierId }) => tierId, isNumber: true },
            { heading: 'Name', cell: ({ name }) => name },
            { heading: 'Probability', cell: ({ probability }) => decimal(probability), isNumber: true },
            {
              heading: 'Pays',
              cell: ({ tierId }) => paysText(returnOf(tierId)),
              value: ({ tierId }) => returnOf(tierId).highest,
              isNumber: true,
            },
            {
              heading: 'Part of the return',
              cell: ({ tierId }) => percent(returnOf(tierId).part, 3),
              isNumber: true,
            },
          ]}
        />
      </Panel>
      <Panel title="Combinations">
        <Table
          caption="Combinations"
          rows={sheet.combinations}
          keyOf={(combination) => sheet.combinations.indexOf(combination)}
          empty="None."
          file="combinations"
          columns={[
            { heading: 'Symbols', cell: ({ comboString }) => comboString },
            { heading: 'Tier', cell: ({ tierId }) => tierId, isNumber: true },
            { heading: 'Pays', cell: ({ payMultiplier }) => `${decimal(payMultiplier)} ×`, isNumber: true },
            {
              heading: 'Probability',
              cell: ({ comboProbability }) => decimal(comboProbability),
              isNumber: true,
            },
          ]}
        />
      </Panel>
    </>
  );
}

function Retire(props: Schemas['OperatorParSheetDetail'] & { readonly onChanged: () => void }) {
  const { parSheetId: id, gameTitle: name, status, onChanged } = props;
  if (!useMayChange() || status !== 'ACTIVE') return null;
  return (
    <DangerZone>
      <ChangeForm change={RETIRE_SHEET} path={{ id }} {...{ name, typed: name, onDone: onChanged }} />
    </DangerZone>
  );
}
