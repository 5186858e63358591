import { keepGoing } from '../../loops/keepGoing.ts'
import { Alarms } from '../../sagas/alarms.ts'
import { domains } from '../../sagas/domains.ts'
import type { Node } from './node.ts'

/** Takes custom domains through their statuses. Any number of nodes may: the log lets each step happen once. */
export const startDomains = async (node: Node): Promise<void> => {
  const { config, signal, logger } = node
  const alarms = new Alarms()
  node.onClose(() => alarms.close())
  const head = await node.store.head()
  await node.views.reach(head)
  const deps = { ...node, alarms, domainsZone: config.domainsZone, checkMs: config.domainCheckMs }
  void keepGoing('The domain saga', (until) => domains(deps, head, until), { signal, logger })
}
