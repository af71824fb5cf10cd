/** Downloads reports as CSV from the service and saves them as files. */
import { bodyOf } from './api.js';
import { save } from './download.js';

/**
 * Saves a report as a CSV file.
 *
 * @param path path in the operator API, with a leading slash
 * @throws ApiFault if the service refuses the request or does not respond
 */
export async function saveCsv(path: string, query: Record<string, string>, name: string): Promise<void> {
  const wanted = new URLSearchParams({ ...query, escapeFormulas: 'true' });
  const asked = fetch(`/api/operator/v1${path}?${wanted}`, {
    credentials: 'same-origin',
    headers: { Accept: 'text/csv' },
  });
  const answered = asked.then(async (response) =>
    response.ok
      ? { data: await response.text(), response }
      : { error: (await response.json()) as unknown, response },
  );
  save(name, await bodyOf<string>(answered));
}
