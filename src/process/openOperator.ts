import { Operator } from '../api/http/operator.ts'
import { operatorSessionsOf } from '../commands/credentials/operatorSessions.ts'
import type { Node } from './roles/node.ts'
import type { Secrets } from './secretsFile.ts'

/** Opens the operator of an installation, with the tokens of both master keys during a rotation. */
export const openOperator = (
  { operatorToken, previousOperatorToken }: Secrets,
  { aggregates, keyring, logger }: Pick<Node, 'aggregates' | 'keyring' | 'logger'>,
): Operator =>
  new Operator({
    tokens: [operatorToken, ...(previousOperatorToken === null ? [] : [previousOperatorToken])],
    sessions: operatorSessionsOf({ aggregates }),
    keyring,
    logger,
  })
