/** Page of the operators of the service: names, roles and keys. */
import { OPERATORS, REVOKE_OPERATOR, ROTATE_OPERATOR } from '../../src/api/client/views/operators.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { ChangeForm, Field, Form } from '../form.js';
import { FormDialog, Toolbar } from '../formDialog.js';
import { useLoad } from '../load.js';
import { useIsAdmin } from '../session.js';
import { columnsOf, Table } from '../table.js';
import { KeyPrefix, Load, Secret } from '../ui.js';

type Operator = Schemas['Operator'];

function Actions({ name, status, onChanged }: Operator & { readonly onChanged: () => void }) {
  if (status === 'revoked') return null;
  return (
    <div class="actions">
      <ChangeForm
        change={ROTATE_OPERATOR}
        path={{ name }}
        {...{ name, isInline: true }}
        onDone={({ apiKey }) => <Secret label={`New key of ${name}`} value={apiKey} />}
      />
      <ChangeForm
        change={REVOKE_OPERATOR}
        path={{ name }}
        {...{ name, typed: name, isInline: true, onDone: onChanged }}
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
            columns={columnsOf(OPERATORS, { 'Begins with': ({ prefix }) => <KeyPrefix of={prefix} /> })}
            actions={isAdmin && ((row) => <Actions {...row} onChanged={loaded.reload} />)}
          />
        )}
      </Load>
    </>
  );
}
