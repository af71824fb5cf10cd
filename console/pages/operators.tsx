/** Page of the operators of the service: names, roles and keys. */
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form } from '../form.js';
import { time } from '../format.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { useIsAdmin } from '../session.js';
import { Table } from '../table.js';
import { KeyPrefix, Load, Secret, Status } from '../ui.js';

type Operator = Schemas['Operator'];

function Actions({ name, status, onChanged }: Operator & { readonly onChanged: () => void }) {
  if (status === 'revoked') return null;
  const params = { path: { name } };
  return (
    <div class="actions">
      <Form
        label={`Rotate the key of ${name}`}
        button="Rotate"
        isInline
        isDangerous
        confirm={{
          title: `Replace the key of ${name}?`,
          consequence: 'The present key and its sessions end at once. The new key is shown only once.',
          button: 'Replace the key',
          isDangerous: true,
          asksReason: true,
        }}
        act={async ({ reason }) => {
          const body = { reason: reason! };
          const { apiKey } = await bodyOf(api.POST('/operators/{name}/rotate', { params, body }));
          return <Secret label={`New key of ${name}`} value={apiKey} />;
        }}
      />
      <Form
        label={`Revoke ${name}`}
        button="Revoke"
        isInline
        isDangerous
        confirm={{
          title: `Revoke ${name}?`,
          consequence: "The key and its sessions end at once. The name can't be used again.",
          button: 'Revoke',
          isDangerous: true,
          typed: name,
          asksReason: true,
        }}
        act={async ({ reason }) => {
          const query = { reason: reason! };
          await bodyOf(api.DELETE('/operators/{name}', { params: { ...params, query } }));
          onChanged();
          return 'Revoked.';
        }}
      />
    </div>
  );
}

export function Operators() {
  const isAdmin = useIsAdmin();
  const loaded = useLoad(() => bodyOf(api.GET('/operators', {})), []);
  const create = async ({ name, role }: Record<string, string>) => {
    const body = { name: name!, role: role as Schemas['OperatorRole'] };
    const { apiKey } = await bodyOf(api.POST('/operators', { body }));
    loaded.reload();
    return <Secret label={`Key of ${name}`} value={apiKey} />;
  };
  return (
    <>
      {isAdmin ? (
        <Toolbar>
          <FormDialog title="New operator">
            <Form label="New operator" button="Issue a key" act={create}>
              <Field label="Name" name="name" required hint="Name in the audit log, for example jane.doe" />
              <Field label="Role" name="role" options={['auditor', 'support', 'operator', 'admin']} />
            </Form>
          </FormDialog>
        </Toolbar>
      ) : (
        <p class="note">Only an admin can manage operators.</p>
      )}
      <Load loaded={loaded}>
        {({ operators }) => (
          <Table
            caption="Operators"
            rows={operators}
            keyOf={({ name }) => name}
            empty="No operators except the first one, whose key the service was started with. Issue a key to each person with New operator."
            columns={[
              { heading: 'Name', cell: ({ name }) => name },
              { heading: 'Role', cell: ({ role }) => role },
              { heading: 'Key begins with', cell: ({ prefix }) => <KeyPrefix of={prefix} /> },
              { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              { heading: 'Key issued (UTC)', cell: ({ issuedAt }) => time(issuedAt) },
              { heading: 'Expires (UTC)', cell: ({ expiresAt }) => time(expiresAt) },
              ...(isAdmin
                ? [
                    {
                      heading: 'Change',
                      cell: (row: Operator) => <Actions {...row} onChanged={loaded.reload} />,
                    },
                  ]
                : []),
            ]}
          />
        )}
      </Load>
    </>
  );
}
