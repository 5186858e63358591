import { deploy, handle } from '../support/build.ts'
import { newId } from '../../src/ids.ts'
import { KINDS, LEAVING, openPeers, type Kind } from '../support/leftConnections.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { resultOf } from './tries.ts'

attackSuite(
  'the connections of a run that has ended',
  KINDS.map((kind: Kind) => ({
    id: `A/13-after-the-end/connection/${kind}`,
    attempt: `send over an open connection (${kind}) after the run ended, while another run keeps the process awake`,
    severity: 'high' as const,
    async run(target) {
      const peers = await openPeers()
      try {
        const ports = [peers.portOf(kind), peers.portOf('http')]
        const fresh = await target.fresh({
          SVC_EGRESS_ALLOW: ports.map((port) => `127.0.0.1:${port}`).join(','),
        })
        const { api } = fresh.attacker
        const project = `p-${newId()}`
        await deploy(api, project, { 'main.js': LEAVING })
        const call = (name: string, ...args: unknown[]) =>
          handle(api, 'svc:call', { fn: `main/${name}`, project, args })
        const held = call('holds')
        resultOf(await call('leaves', kind, peers.portOf(kind)))
        await until(() => peers.received.join('').includes('first'))
        peers.poke()
        resultOf(await call('continues', peers.portOf('http')))
        resultOf(await held)
        const late = peers.received.filter((text) => text !== 'first')
        if (late.length > 0) throw new Error(`the server received ${late.join(', ')} after the end`)
        return 'the server received nothing after the end, although another run used the process'
      } finally {
        peers.close()
      }
    },
  })),
)
