import type { FaultProxy } from '../support/faultProxy.ts'
import type { EngineSetting } from '../support/engineProxies.ts'
import type { StandIn } from '../support/eventstoredb/index.ts'
import type { Fleet } from './fleet.ts'
import type { Fault } from './plan.ts'
import type { SoakNode } from './soakNode.ts'

type Heal = () => void | Promise<void>

/** The largest file of a node whose disk is full. */
const FULL_DISK_BYTES = 4096
/** Milliseconds per unit of `amount` by which the clock of a node jumps forwards (beyond 50) or back. */
const JUMP_MS = 500
/** Milliseconds per unit of `amount` by which a slow link delays data. */
const SLOW_MS = 20

/** Lets the fault begin. The returned function ends it; null if the node is down already. */
export const strike = async (fault: Fault, fleet: Fleet): Promise<Heal | null> => {
  if (fault.at === 'stand-in') return fleet.standIn ? strikeStandIn(fleet.standIn, fault) : null
  const nodes = fleet.nodes.filter(({ name }) => fault.node === null || fault.node === name)
  if (fault.at === 'node') {
    const [node] = nodes
    return node && node.url !== null ? strikeNode(node, fault) : null
  }
  const proxies = nodes.flatMap(({ proxies }) => proxies[fault.engine as EngineSetting] ?? [])
  for (const proxy of proxies) strikeLink(proxy, fault)
  return async () => {
    for (const proxy of proxies) await proxy.heal()
  }
}

const strikeNode = async (
  node: SoakNode,
  { what, amount }: Extract<Fault, { at: 'node' }>,
): Promise<Heal> => {
  switch (what) {
    case 'kill':
      await node.end('SIGKILL')
      return () => node.start()
    case 'stop':
      await node.end('SIGTERM')
      return () => node.start()
    case 'pause':
      node.pause()
      return () => node.resume()
    case 'full disk':
      await node.limitFiles(FULL_DISK_BYTES)
      return () => node.limitFiles('unlimited')
    case 'clock jump':
      node.shiftClock((amount - 50) * JUMP_MS)
      return () => node.shiftClock(0)
    default:
      return what satisfies never
  }
}

const strikeLink = (proxy: FaultProxy, { what, amount }: Extract<Fault, { at: 'link' }>): void => {
  switch (what) {
    case 'refuse':
      return proxy.refuse()
    case 'swallow':
      return proxy.blackhole()
    case 'reset':
      return proxy.reset()
    case 'slow':
      return proxy.delay(amount * SLOW_MS)
    case 'half-close':
      return proxy.halfClose()
    default:
      return what satisfies never
  }
}

const strikeStandIn = async (
  { misbehave, stop, restart }: StandIn,
  { what, amount }: Extract<Fault, { at: 'stand-in' }>,
): Promise<Heal> => {
  const times = 1 + (amount % 20)
  const heal = () => misbehave.heal()
  switch (what) {
    case 'cut reads':
      misbehave.cutReads(amount % 5, { times })
      return heal
    case 'doubled appends': // written, and sent again because the reply is lost
      misbehave.appends({ reply: 'drop', written: true }, { times })
      misbehave.appends({ reply: 'twice', afterMs: amount }, { times })
      return heal
    case 'late replies':
      misbehave.appends({ reply: 'late', afterMs: amount * 50 }, { times })
      return heal
    case 'missing replies':
      misbehave.appends({ reply: 'never', written: amount % 2 === 0 }, { times })
      return heal
    case 'refused appends':
      misbehave.appends({ reply: 'not ready' }, { times })
      misbehave.appends({ reply: 'timeout', written: amount % 2 === 0 }, { times })
      return heal
    case 'deaf calls':
      for (const kind of ['read', 'subscription', 'consumer', 'group', 'append', 'features'] as const)
        misbehave.calls(kind, amount % 2 === 0 ? 'unanswered' : 'ended', { times: 1 + (amount % 3) })
      return heal
    case 'ended subscriptions':
      misbehave.endSubscriptions()
      return heal
    case 'forgotten consumers':
      misbehave.forgetConsumers()
      return heal
    case 'silence':
      misbehave.silence()
      return heal
    case 'restart':
      await stop()
      return restart
    default:
      return what satisfies never
  }
}
