import type { Node } from '../node.ts'
import { findGroup, groupsIn, removeGroup, storeGroup } from './catalogue.ts'
import type { Definition } from './definition.ts'
import { Group } from './group.ts'

/** The groups that run on a node: all groups on the leader, none on a follower. */
export class Registry {
  readonly #node: Node
  readonly #running = new Map<string, Group>()

  constructor(node: Node) {
    this.#node = node
    if (!node.misbehaviour.leader)
      for (const { stream, group } of groupsIn(node.log)) this.find(stream, group)
    const stay = node.misbehaviour.onFollow(() => this.close())
    const die = () => {
      stay()
      for (const group of this.#running.values()) group.die()
    }
    node.killed.addEventListener('abort', die, { once: true })
  }

  find(stream: string, group: string): Group | undefined {
    const definition = findGroup(this.#node.log, stream, group)
    if (!definition) return undefined
    const key = keyOf(definition)
    const running = this.#running.get(key) ?? new Group(this.#node, definition)
    this.#running.set(key, running)
    return running
  }

  create(definition: Definition): void {
    storeGroup(this.#node.log, definition)
    this.find(definition.stream, definition.group)
  }

  /** Restarts the group at its checkpoint and drops its consumers, as the server does. */
  update(group: Group, { settings }: Definition): void {
    this.#stop(group)
    this.create({ ...group.definition, settings })
  }

  delete(group: Group): void {
    const { stream, group: name } = group.definition
    this.#stop(group)
    removeGroup(this.#node.log, stream, name)
    group.forget()
  }

  /** All groups, or those of one stream. */
  list(stream?: string): Group[] {
    return groupsIn(this.#node.log)
      .filter((one) => stream === undefined || one.stream === stream)
      .flatMap((one) => this.find(one.stream, one.group) ?? [])
  }

  close(): void {
    for (const group of this.#running.values()) this.#stop(group)
  }

  #stop(group: Group): void {
    this.#running.delete(keyOf(group.definition))
    group.close()
  }
}

const keyOf = ({ stream, group }: Definition): string => `${stream}::${group}`
