/** Lists webhooks that fail at every attempt, or that were deactivated because of that. */
import { WEBHOOKS } from '../../src/api/client/views/service.js';
import type { Schemas } from '../api.js';
import { PartnerLink } from '../names.js';
import { columnsOf, Table } from '../table.js';

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
      ...columnsOf(WEBHOOKS, { URL: ({ url }) => <span class="address">{url}</span> }),
    ]}
  />
);
