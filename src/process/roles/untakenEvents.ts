import { keepGoing } from '../../loops/keepGoing.ts'
import { UntakenEvents } from '../../worker/untakenEvents.ts'
import type { Node } from './node.ts'

/** Starts the watch over events that no worker takes. */
export const watchUntakenEvents = (node: Node): UntakenEvents => {
  const untaken = new UntakenEvents(node)
  void keepGoing('The watch over untaken events', (until) => untaken.follow(until), node)
  return untaken
}
