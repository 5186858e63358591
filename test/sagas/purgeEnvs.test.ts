import { MAX_STORING_MS } from '../../src/content/contentKey.ts'
import { purgeEnvsCore } from '../../src/sagas/purgeEnvs.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'

const MINUTE = 60_000
const LAST = MAX_STORING_MS + 20 * MINUTE
const env = { env_id: 'e', at: 1000 }
const again = (at: number) => ({ do: 'setAlarm', key: 'e', at, input: { type: 'deleted', ...env } }) as const

const rule = suite('the rules of the removal of deleted environments')
rule('the content is removed at once', () =>
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'deleted', ...env })
    .at(2000)
    .then({ do: 'carryOut', key: 'e', command: { ...env, final: false } }),
)
rule('it is removed again when nothing can be in progress any more', () => {
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'purged', ...env, final: false })
    .at(2000)
    .then(again(1000 + LAST))
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'deleted', ...env })
    .at(1000 + LAST)
    .then({ do: 'carryOut', key: 'e', command: { ...env, final: true } })
})
rule('no removal is final while the content of a file may still arrive', () =>
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'deleted', ...env })
    .at(1000 + MAX_STORING_MS)
    .then({ do: 'carryOut', key: 'e', command: { ...env, final: false } }),
)
rule('it is removed again in time if a clock was ahead at the deletion', () => {
  const ahead = { env_id: 'e', at: 400 * 24 * 60 * MINUTE }
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'deleted', ...ahead })
    .at(2000)
    .then({ do: 'carryOut', key: 'e', command: { env_id: 'e', at: 2000, final: false } })
  const next = { type: 'deleted', env_id: 'e', at: 3000 } as const
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'purged', ...ahead, final: false })
    .at(3000)
    .then({ do: 'setAlarm', key: 'e', at: 3000 + LAST, input: next })
})
rule('nothing follows the final removal', () =>
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'purged', ...env, final: true })
    .at(2000)
    .then(),
)
rule('a removal that failed is tried again a minute later', () =>
  reacting(purgeEnvsCore)
    .given()
    .when({ type: 'failed', ...env })
    .at(5000)
    .then(again(5000 + MINUTE)),
)
rule.run()
