import type { Jsonified } from './jsonified.ts'

/**
 * Types of names in a table, such as the functions of a project by reference. An empty table allows every name, so code
 * compiles before the project declares any.
 */
export type NameIn<Table> = keyof Table extends never ? string : keyof Table & string

/**
 * A name of the table, as the type of an argument. `Name` itself is not limited to the names of the table: TypeScript would
 * resolve all of its functions for that, and a function that calls another one could not have an inferred type.
 */
export type Named<Table, Name> = keyof Table extends never
  ? Name
  : Name extends keyof Table
    ? Name
    : NameIn<Table>

/** The data of an event of a table. */
export type DataOf<Table, Name> = Name extends keyof Table ? Table[Name] : unknown

/** The argument `data` of an event; optional if the event may have none. Options may follow it. */
export type DataArgument<Table, Name> =
  undefined extends DataOf<Table, Name>
    ? [data?: DataOf<Table, Name>]
    : null extends DataOf<Table, Name>
      ? [data?: DataOf<Table, Name>]
      : [data: DataOf<Table, Name>]

/** The arguments of a function of a table. */
export type ArgumentsOf<Table, Name> = Name extends keyof Table
  ? Table[Name] extends (...args: infer Arguments) => unknown
    ? Arguments
    : never
  : readonly unknown[]

/** The result of a function of a table, once it is awaited. */
export type ResultOf<Table, Name> = Name extends keyof Table
  ? Table[Name] extends (...args: never[]) => infer Result
    ? Jsonified<Awaited<Result>>
    : never
  : unknown

/** The data with which an event handler is called; `unknown` for a function without an event. */
export type HandledData<Handler> = Handler extends (event: infer Input, ...rest: never[]) => unknown
  ? Input extends { readonly data: infer Data }
    ? Data
    : unknown
  : unknown
