/** `spindle openapi`: the contract that a running service serves. */
import { bodyOf } from '../../api/client/apiClients.js';
import type { Call, OperatorCommands } from './call.js';

/** Adds the command to the program. */
export function addOpenApiCommand(commands: OperatorCommands): void {
  commands.add('openapi', 'the OpenAPI document of the operator API', showOpenApi);
}

async function showOpenApi({ client }: Call): Promise<void> {
  const document = await bodyOf(client.GET('/openapi.json'));
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}
