/* LuaJIT registers unwind tables of its machine code as GCC's unwinder takes them: a pointer to the table, whose first entry says
   what all have in common. LLVM's, which Zig links, takes a pointer to the entry behind that. packaging/build.sh gives LuaJIT these
   functions in the place of __register_frame and __deregister_frame. */

extern void __register_frame(const void *);
extern void __deregister_frame(const void *);

/* An entry begins with its length, which does not count itself. */
static const void *second(const void *table)
{
    return (const char *)table + sizeof(unsigned) + *(const unsigned *)table;
}

void lua_register_frame(const void *table)
{
    __register_frame(second(table));
}

void lua_deregister_frame(const void *table)
{
    __deregister_frame(second(table));
}
