import { sweepTenantsCore } from '../../src/sagas/sweepTenants.ts'
import { suite } from '../support/suite.ts'
import { reacting } from './reacting.ts'

const HOUR = 3600_000
const alarm = (sweep: 'expireCalls' | 'forgetConsumers', at: number) =>
  ({ do: 'setAlarm', key: sweep, at, input: { type: 'due', sweep } }) as const

const rule = suite('the rules of the sweep of tenants')
rule('the first sweeps follow within a minute of the start', () =>
  reacting(sweepTenantsCore)
    .given()
    .when({ type: 'started', spread: 1 })
    .at(1000)
    .then(alarm('expireCalls', 61_000), alarm('forgetConsumers', 61_000)),
)
rule('each is repeated every six hours', () => {
  for (const sweep of ['expireCalls', 'forgetConsumers'] as const)
    reacting(sweepTenantsCore)
      .given()
      .when({ type: 'due', sweep })
      .at(1000)
      .then({ do: 'carryOut', key: sweep, command: { sweep, now: 1000 } }, alarm(sweep, 1000 + 6 * HOUR))
})
rule.run()
