/** `spindle openapi`: prints the OpenAPI document of a running service. */
import { bodyOf } from '../../api/client/apiClients.js';
import type { Call, OperatorCommands } from './call.js';

export function addOpenApiCommand(commands: OperatorCommands): void {
  commands.add('openapi', 'print the OpenAPI document of the operator API', showOpenApi);
}

async function showOpenApi({ client }: Call): Promise<void> {
  const document = await bodyOf(client.GET('/openapi.json'));
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}
