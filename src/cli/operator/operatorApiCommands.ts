/**
 * Declares all commands over the operator API, in the order of the help. Each command sends one request and
 * prints the response as text for people or as JSON.
 */
import type { Command } from 'commander';
import { addApiVersionCommands } from './apiVersionCommands.js';
import { addAuditLogCommand } from './auditLogCommand.js';
import { addBlackjackCommands } from './blackjackCommands.js';
import { type OpenClient, OperatorCommands } from './call.js';
import { addCellCommands } from './cellCommands.js';
import { addCommunalCommands } from './communalCommands.js';
import { addComplianceCommands } from './complianceCommands.js';
import { addDealingCommands } from './dealingCommands.js';
import { addGameCommands } from './gameCommands.js';
import { addKeyCommands } from './keyCommands.js';
import { addOpenApiCommand } from './openApiCommand.js';
import { addOperatorCommands } from './operatorCommands.js';
import { addOverviewCommands } from './overviewCommands.js';
import { addPartnerCommands } from './partnerCommands.js';
import { addPlayerCommands } from './playerCommands.js';
import { addRaffleCommands } from './raffleCommands.js';
import { addReportCommands } from './reportCommands.js';
import { addRequestCommands } from './requestCommands.js';
import { addReviewCommands } from './reviewCommands.js';
import { addSettlementCommands } from './settlementCommands.js';
import { addSpinCommands } from './spinCommands.js';
import { addWebhookCommands } from './webhookCommands.js';

export function addOperatorApiCommands(program: Command, open: OpenClient): void {
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
  addRequestCommands(commands);
  addWebhookCommands(commands);
  addPlayerCommands(commands);
  addSettlementCommands(commands);
  addReportCommands(commands);
  addReviewCommands(commands);
  addComplianceCommands(commands);
  addApiVersionCommands(commands);
  addOperatorCommands(commands);
  addAuditLogCommand(commands);
  addOpenApiCommand(commands);
}
