/** The commands over the operator API, in the order of the help: each is one request, printed for people or as JSON. */
import type { Command } from 'commander';
import { addApiVersionCommands } from './apiVersions.js';
import { addAuditLogCommand } from './auditLog.js';
import { addBlackjackCommands } from './blackjack.js';
import { type OpenClient, OperatorCommands } from './call.js';
import { addCellCommands } from './cells.js';
import { addCommunalCommands } from './communal.js';
import { addComplianceCommands } from './compliance.js';
import { addDealingCommands } from './dealing.js';
import { addGameCommands } from './games.js';
import { addKeyCommands } from './keys.js';
import { addOpenApiCommand } from './openApi.js';
import { addOperatorCommands as addNamedOperatorCommands } from './operators.js';
import { addOverviewCommands } from './overview.js';
import { addPartnerCommands } from './partners.js';
import { addPlayerCommands } from './players.js';
import { addRaffleCommands } from './raffles.js';
import { addReportCommands } from './reports.js';
import { addSettlementCommands } from './settlements.js';
import { addSpinCommands } from './spins.js';
import { addWebhookCommands } from './webhooks.js';

/** Adds the commands to the program. */
export function addOperatorCommands(program: Command, open: OpenClient): void {
  const commands = new OperatorCommands(program, open);
  addOverviewCommands(commands);
  addDealingCommands(commands);
  addCellCommands(commands);
  addPartnerCommands(commands);
  addKeyCommands(commands);
  addRaffleCommands(commands);
  addBlackjackCommands(commands);
  addGameCommands(commands);
  addCommunalCommands(commands);
  addSpinCommands(commands);
  addWebhookCommands(commands);
  addPlayerCommands(commands);
  addSettlementCommands(commands);
  addReportCommands(commands);
  addComplianceCommands(commands);
  addApiVersionCommands(commands);
  addNamedOperatorCommands(commands);
  addAuditLogCommand(commands);
  addOpenApiCommand(commands);
}
