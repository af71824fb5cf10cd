/** Lists webhooks that fail at every attempt, or that were deactivated because of that. */
import type { Schemas } from '../api.js';
import { count, time } from '../format.js';
import { PartnerLink } from '../names.js';
import { Table } from '../table.js';
import { Status } from '../ui.js';

export const FailingWebhooks = ({ of }: { readonly of: Schemas['Overview']['failingWebhooks'] }) => (
  <Table
    caption="Webhooks that have failed longest"
    rows={of}
    keyOf={({ id }) => id}
    empty="No webhook is failing."
    columns={[
      {
        heading: 'Partner',
        cell: ({ partnerId }) => <PartnerLink id={partnerId} />,
        value: ({ slug }) => slug,
      },
      { heading: 'URL', cell: ({ url }) => <span class="address">{url}</span> },
      { heading: 'State', cell: ({ health }) => <Status of={health.state} /> },
      { heading: 'Reason', cell: ({ health }) => health.reason },
      { heading: 'Failing since (UTC)', cell: ({ health }) => time(health.failingSince) },
      { heading: 'Pending', cell: ({ health }) => count(health.pending), isNumber: true },
    ]}
  />
);
