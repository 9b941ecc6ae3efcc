/* Ends at once while its threads allocate; the test is in its library's destructor. */
void after_start(unsigned threads);

int main(void)
{
    after_start(3);
    return 0;
}
