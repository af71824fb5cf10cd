/**
 * Text shown to the person who started the service once it is ready: addresses, new keys, an example spin.
 */
import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { localUrl } from '../../platform/serviceFile.js';
import type { Config } from '../config.js';
import type { Running } from './running.js';

/**
 * Returns how the user calls the command on this machine: by its plain name if PATH leads to this
 * installation, as in the container image.
 */
function commandName(): string {
  const own = join(import.meta.dirname, '..', '..', 'cli', 'cli.js');
  const leadsHere = (folder: string): boolean => {
    try {
      return realpathSync(join(folder, 'spindle')) === realpathSync(own);
    } catch {
      return false;
    }
  };
  return (process.env.PATH ?? '').split(delimiter).some(leadsHere) ? 'spindle' : 'npx spindle';
}

export function bannerOf(config: Config, running: Running): string {
  const lines = ['', `${config.BRAND} is ready.`];
  const { port, demo, metricsPort } = running;
  const api = port === undefined ? undefined : localUrl(config.HOST, port);
  if (api !== undefined)
    lines.push(`  API      ${api}/api/partner/v1`, `  docs     ${api}/docs`, `  console  ${api}/console`);
  lines.push(`  command  ${commandName()} --help`);
  lines.push(`  metrics  ${localUrl(config.METRICS_HOST, metricsPort)}/metrics`);
  if (running.isNewOperatorKey) lines.push(`  operator key (shown only once) ${running.operatorKey}`);
  if (config.OPERATOR_API_KEY === undefined) {
    lines.push(`  operator key is stored in ${join(config.DATA_DIR, 'operator-api-key')}`);
  }
  if (demo !== undefined && api !== undefined) {
    const spin = (gameId: number, wagerUsd: number): string => {
      const body = `{"gameId":${gameId},"playerId":"alice","wagerUsd":${wagerUsd}}`;
      return `  curl -s '${api}/api/partner/v1/spin' -H 'X-API-Key: ${demo.apiKey}' -H 'Content-Type: application/json' -d '${body}' -w '\\n'`;
    };
    lines.push(
      `  demo key ${demo.apiKey}`,
      '',
      'Spin:',
      spin(demo.gameId, demo.wagerUsd),
      'Buy a ticket of the raffle:',
      spin(demo.raffleId, demo.ticketPriceUsd),
    );
  }
  return `${lines.join('\n')}\n\n`;
}
