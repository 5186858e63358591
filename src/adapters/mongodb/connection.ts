import type { Db, DbOptions, MongoClient } from 'mongodb'
import { watchStuck } from './watchStuck.ts'

/** The connections to a database. They are opened anew if the driver does not notice that they are lost. */
export class Connection {
  readonly #newClient: () => MongoClient
  readonly #database: string
  #options: DbOptions = {}
  #client: MongoClient
  #db: Db
  #unwatch: () => void

  constructor(newClient: () => MongoClient, database: string) {
    this.#newClient = newClient
    this.#database = database
    this.#client = newClient()
    this.#db = this.#client.db(database)
    this.#unwatch = this.#watch()
  }

  /** The database. Each command asks for it again, because its connections may have been replaced. */
  get db(): Db {
    return this.#db
  }

  /** Applies to all later commands. */
  configure(options: DbOptions): void {
    this.#options = options
    this.#db = this.#client.db(this.#database, options)
  }

  async close(): Promise<void> {
    this.#unwatch()
    await this.#client.close()
  }

  #watch(): () => void {
    return watchStuck(this.#client, () => this.#renew())
  }

  /** The commands of the former client fail. What is stuck in it does not end, so nothing waits for it. */
  #renew(): void {
    this.#client.close().catch(() => {})
    this.#client = this.#newClient()
    this.#db = this.#client.db(this.#database, this.#options)
    this.#unwatch = this.#watch()
  }
}
