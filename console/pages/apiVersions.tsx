/** Page of the partner API versions: their users, and the announcement of a version's end. */
import { endVersion } from '../../src/api/client/views/service.js';
import { send } from '../../src/api/client/views/view.js';
import { api, bodyOf, type Schemas } from '../api.js';
import { Field, Form, questionOf } from '../form.js';
import { NONE, time } from '../format.js';
import { useLoad } from '../load.js';
import { useMayChange } from '../session.js';
import { Table } from '../table.js';
import { DangerZone, Load, Status } from '../ui.js';

type Version = Schemas['ListedApiVersion'];

export function ApiVersions() {
  const loaded = useLoad(() => bodyOf(api.GET('/api-versions', {})), []);
  const mayChange = useMayChange();
  return (
    <Load loaded={loaded}>
      {({ versions }) => (
        <>
          <Table
            caption="Versions of the partner API"
            rows={versions}
            keyOf={({ version }) => version}
            empty="None."
            columns={[
              { heading: 'Version', cell: ({ version }) => version },
              { heading: 'Status', cell: ({ status }) => <Status of={status} /> },
              { heading: 'Deprecated (UTC)', cell: ({ deprecatedAt }) => time(deprecatedAt) },
              { heading: 'Ends (UTC)', cell: ({ sunsetAt }) => time(sunsetAt) },
              { heading: 'Successor', cell: ({ successor }) => successor ?? NONE },
              { heading: 'Used by', cell: ({ partners }) => `${partners.length} partners` },
            ]}
          />
          {mayChange ? <Deprecate versions={versions} onChanged={loaded.reload} /> : null}
        </>
      )}
    </Load>
  );
}

const endAt = (day: string) => endVersion(`${day}T00:00:00Z`);

const Deprecate = ({
  versions,
  onChanged,
}: {
  readonly versions: readonly Version[];
  readonly onChanged: () => void;
}) => (
  <DangerZone>
    <Form
      label="Announce the sunset of a version"
      button="Announce the sunset"
      isDangerous
      confirm={({ version, sunset }) => [
        { ...questionOf(endAt(sunset!), `version ${version}`), typed: version! },
      ]}
      act={async ({ version, sunset, reason }) => {
        const { endpoint, body, done } = endAt(sunset!);
        await bodyOf(send(api, endpoint, { path: { version }, body, reason }));
        onChanged();
        return String(done);
      }}
    >
      <Field label="Version" name="version" options={versions.map(({ version }) => version)} />
      <Field label="Stops working at 00:00 UTC on" name="sunset" type="date" required />
    </Form>
  </DangerZone>
);
